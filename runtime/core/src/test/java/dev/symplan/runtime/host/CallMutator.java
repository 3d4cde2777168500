package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.op.ArgBinder;
import dev.symplan.ir.op.OpTypeException;
import dev.symplan.ir.op.SchemaType;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.Random;

/** Changes a few arguments of a call: shapes, element types, numbers, lists, what is left out. */
final class CallMutator {
  private static final List<DType> DTYPES = List.of(DType.values());
  private static final List<String> TEXTS =
      List.of(
          "mean", "sum", "none", "tanh", "floor", "trunc", "prod", "amax", "amin", "multiply", "");
  private static final long[] NUMBERS = {
    -9, -3, -2, -1, 0, 1, 2, 3, 4, 5, 7, 100, 1L << 31, 1L << 40
  };

  private final Random random;
  private final List<HostTensor> operands = new ArrayList<>();

  CallMutator(Random random) {
    this.random = random;
  }

  /** {@return a changed call; empty if the arguments do not fit the schema} */
  Optional<RecordedCall> mutate(RecordedCall call) {
    call.operands().forEach(operand -> operands.add(Programs.copy(operand)));
    var args = new ArrayList<Arg>(call.of(operands).args());
    for (int i = 0; i <= random.nextInt(3) && !args.isEmpty(); i++) {
      int index = random.nextInt(args.size());
      args.set(index, changed(args.get(index), call.def().schema().params().get(index).type()));
    }
    var positional = new ArrayList<Arg>();
    var keywords = new LinkedHashMap<String, Arg>();
    for (int i = 0; i < args.size(); i++) {
      var param = call.def().schema().params().get(i);
      if (param.keywordOnly()) {
        keywords.put(param.name(), args.get(i));
      } else {
        positional.add(args.get(i));
      }
    }
    try {
      return Optional.of(
          new RecordedCall(
              call.line(),
              call.def(),
              ArgBinder.bind(call.def().schema(), positional, keywords),
              ImmutableList.copyOf(operands),
              ImmutableList.of()));
    } catch (OpTypeException e) {
      return Optional.empty();
    }
  }

  private Arg changed(Arg arg, SchemaType type) {
    if (type instanceof SchemaType.OptionalOf(var element)) {
      if (!(arg instanceof Arg.None)) {
        return random.nextInt(3) == 0 ? Arg.None.NONE : changed(arg, element);
      }
      return given(element);
    }
    return switch (arg) {
      case Arg.Ref(Value value) when value.isTensor() -> tensor(changed(operands.get(value.id())));
      case Arg.Int(long value) -> new Arg.Int(number(value));
      case Arg.Float(double value) -> new Arg.Float(random.nextInt(3) - value);
      case Arg.Bool(boolean value) -> new Arg.Bool(!value);
      case Arg.Str _ -> new Arg.Str(TEXTS.get(random.nextInt(TEXTS.size())));
      case Arg.Dtype _ -> new Arg.Dtype(dtype());
      case Arg.Seq(ImmutableList<Arg> items) -> new Arg.Seq(changed(items, type));
      case Arg.None _ -> given(type);
      case Arg.Ref _, Arg.Symbol _, Arg.Device _ -> arg;
    };
  }

  private ImmutableList<Arg> changed(List<Arg> items, SchemaType type) {
    var element = type instanceof SchemaType.ListOf(var of, var _) ? of : type;
    var list = new ArrayList<>(items);
    int at = list.isEmpty() ? 0 : random.nextInt(list.size());
    switch (random.nextInt(3)) {
      case 0 -> {
        if (!list.isEmpty()) {
          list.remove(at);
        }
      }
      case 1 -> list.add(at, list.isEmpty() ? given(element) : changed(list.get(at), element));
      default -> {
        if (!list.isEmpty()) {
          list.set(at, changed(list.get(at), element));
        }
      }
    }
    return ImmutableList.copyOf(list);
  }

  /** An argument where there was none. */
  private Arg given(SchemaType type) {
    return switch (type) {
      case SchemaType.Base base ->
          switch (base) {
            case TENSOR ->
                operands.isEmpty()
                    ? Arg.None.NONE
                    : tensor(changed(operands.get(random.nextInt(operands.size()))));
            case INT, SYM_INT, NUMBER -> new Arg.Int(number(1));
            case FLOAT, SYM_FLOAT -> new Arg.Float(random.nextDouble());
            case BOOL, SYM_BOOL -> new Arg.Bool(random.nextBoolean());
            case STRING -> new Arg.Str(TEXTS.get(random.nextInt(TEXTS.size())));
            case SCALAR_TYPE -> new Arg.Dtype(dtype());
            case COMPLEX,
                LAYOUT,
                DEVICE,
                MEMORY_FORMAT,
                Q_SCHEME,
                GENERATOR,
                DIMNAME,
                STORAGE,
                STREAM,
                DEVICE_INDEX,
                ANY,
                NONE,
                CONST_QUANTIZER ->
                Arg.None.NONE;
          };
      case SchemaType.ListOf(var element, var size) -> {
        var items = ImmutableList.<Arg>builder();
        for (int i = 0; i < size.orElse(random.nextInt(4)); i++) {
          items.add(given(element));
        }
        yield new Arg.Seq(items.build());
      }
      case SchemaType.OptionalOf(var element) -> given(element);
      case SchemaType.TupleOf _, SchemaType.GenericOf _, SchemaType.Named _ -> Arg.None.NONE;
    };
  }

  private long number(long value) {
    return random.nextBoolean()
        ? value + random.nextInt(5) - 2
        : NUMBERS[random.nextInt(NUMBERS.length)];
  }

  private DType dtype() {
    return DTYPES.get(random.nextInt(DTYPES.size()));
  }

  private Arg tensor(HostTensor tensor) {
    operands.add(tensor);
    int id = operands.size() - 1;
    return new Arg.Ref(new Value(id, "x" + id, tensor.type(), Span.NONE, true));
  }

  private HostTensor changed(HostTensor tensor) {
    var type = tensor.type();
    var sizes = new ArrayList<>(type.sizes().asList());
    int dim = sizes.isEmpty() ? 0 : random.nextInt(sizes.size());
    switch (random.nextInt(6)) {
      case 0 -> {
        return filled(type.withDType(dtype()).contiguous(), tensor);
      }
      case 1 -> sizes.add(dim, (long) random.nextInt(4));
      case 2 -> {
        if (!sizes.isEmpty()) {
          sizes.remove(dim);
        }
      }
      case 3 -> {
        if (!sizes.isEmpty()) {
          sizes.set(dim, 0L);
        }
      }
      default -> {
        if (!sizes.isEmpty()) {
          sizes.set(dim, Math.max(0, sizes.get(dim) + random.nextInt(3) - 1));
        }
      }
    }
    return filled(TensorType.contiguous(type.dtype(), ImmutableLongArray.copyOf(sizes)), tensor);
  }

  /** The old elements over and over, so that indices stay what they were. */
  private static HostTensor filled(TensorType type, HostTensor old) {
    var tensor = HostTensor.allocate(type);
    var flat = tensor.as(TensorType.contiguous(type.dtype(), type.numel()));
    var from = Views.flat(old);
    boolean complex =
        type.dtype().kind() == DType.Kind.COMPLEX || old.dtype().kind() == DType.Kind.COMPLEX;
    for (long i = 0; i < type.numel() && old.type().numel() > 0 && !complex; i++) {
      long at = i % old.type().numel();
      if (type.dtype().isFloat() && old.dtype().isFloat()) {
        flat.set(from.get(at), i);
      } else if (type.dtype() == old.dtype() || !type.dtype().isFloat() && !old.dtype().isFloat()) {
        flat.setLong(from.getLong(at), i);
      } else {
        flat.set(old.dtype().isFloat() ? from.get(at) : from.getLong(at), i);
      }
    }
    return tensor;
  }
}
