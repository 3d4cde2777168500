package dev.symplan.runtime.host;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableListMultimap;
import com.google.common.io.Resources;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.Notes;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Type;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.ArgBinder;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpResult;
import dev.symplan.runtime.tensor.HostTensor;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import java.util.zip.GZIPInputStream;

/**
 * A call of an op with what PyTorch computed, from {@code recorded/*.jsonl.gz}.
 *
 * @param line where it stands in its file
 * @param args the tensors among them are {@link Value}s, whose ids count {@code operands}
 * @param expected one for each result; empty if PyTorch gives none, or no tensor
 */
record RecordedCall(
    int line,
    OpDef def,
    ImmutableList<Arg> args,
    ImmutableList<HostTensor> operands,
    ImmutableList<Optional<HostTensor>> expected) {

  private static final ImmutableList<String> FILES = ImmutableList.of("ops", "complex");

  /** {@return all calls, by the name of their op} */
  static ImmutableListMultimap<String, RecordedCall> all() {
    var calls = ImmutableListMultimap.<String, RecordedCall>builder();
    for (var file : FILES) {
      read("recorded/%s.jsonl.gz".formatted(file), calls);
    }
    return calls.build();
  }

  private static void read(
      String resource, ImmutableListMultimap.Builder<String, RecordedCall> calls) {
    var json = new JsonMapper();
    try (var stream = new GZIPInputStream(Resources.getResource(resource).openStream());
        var lines = new BufferedReader(new InputStreamReader(stream, StandardCharsets.UTF_8))) {
      lines.readLine();
      int number = 2;
      for (var line = lines.readLine(); line != null; line = lines.readLine()) {
        var call = new Reader().read(number++, json.readTree(line));
        calls.put(call.def.name().toString(), call);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Reads one line. */
  private static final class Reader {
    private final List<HostTensor> operands = new ArrayList<>();

    RecordedCall read(int line, JsonNode call) {
      var schema = call.get("op").asText();
      var def = BuiltinOps.registry().get(schema.substring(0, schema.indexOf('(')));
      var positional = new ArrayList<Arg>();
      call.get("args").forEach(arg -> positional.add(arg(arg)));
      var keywords = new LinkedHashMap<String, Arg>();
      call.path("kwargs").properties().forEach(e -> keywords.put(e.getKey(), arg(e.getValue())));
      var expected = ImmutableList.<Optional<HostTensor>>builder();
      for (var result : call.get("results")) {
        expected.add(isTensor(result) ? Optional.of(tensor(result)) : Optional.empty());
      }
      return new RecordedCall(
          line,
          def,
          ArgBinder.bind(def.schema(), positional, keywords),
          ImmutableList.copyOf(operands),
          expected.build());
    }

    private Arg arg(JsonNode node) {
      return switch (node.getNodeType()) {
        case NULL -> Arg.None.NONE;
        case BOOLEAN -> new Arg.Bool(node.asBoolean());
        case STRING -> new Arg.Str(node.asText());
        case NUMBER ->
            node.isIntegralNumber()
                ? new Arg.Int(node.longValue())
                : new Arg.Float(node.doubleValue());
        case ARRAY -> {
          var items = ImmutableList.<Arg>builder();
          node.forEach(item -> items.add(arg(item)));
          yield new Arg.Seq(items.build());
        }
        case OBJECT -> object(node);
        case BINARY, MISSING, POJO -> throw new IllegalArgumentException(node.toString());
      };
    }

    private Arg object(JsonNode node) {
      if (isTensor(node)) {
        operands.add(tensor(node));
        return new Arg.Ref(operand(operands.size() - 1, operands.getLast()));
      }
      if (node.has("float")) {
        return new Arg.Float(number(node.get("float")));
      }
      if (node.has("device")) {
        return new Arg.Device(node.get("device").asText());
      }
      var name = node.get("torch").asText();
      return DType.ofTorchName(name).<Arg>map(Arg.Dtype::new).orElseGet(() -> new Arg.Symbol(name));
    }

    private static boolean isTensor(JsonNode node) {
      return node.has("data");
    }

    private static HostTensor tensor(JsonNode node) {
      var dtype = DType.ofShortName(node.get("dtype").asText()).orElseThrow();
      var type =
          new TensorType(
              dtype, longs(node.get("size")), longs(node.get("stride")), MemorySpace.ANY);
      var data = node.get("data");
      var flat = HostTensor.allocate(TensorType.contiguous(dtype.real(), data.size()));
      for (int i = 0; i < data.size(); i++) {
        if (dtype.real().isFloat()) {
          flat.set(number(data.get(i)), i);
        } else {
          flat.setLong(data.get(i).bigIntegerValue().longValue(), i);
        }
      }
      return flat.as(type);
    }

    private static ImmutableLongArray longs(JsonNode list) {
      var longs = ImmutableLongArray.builder(list.size());
      list.forEach(item -> longs.add(item.longValue()));
      return longs.build();
    }

    private static double number(JsonNode node) {
      return switch (node.asText()) {
        case "inf" -> Double.POSITIVE_INFINITY;
        case "-inf" -> Double.NEGATIVE_INFINITY;
        case "nan" -> Double.NaN;
        default -> node.doubleValue();
      };
    }
  }

  private static Value operand(int id, HostTensor tensor) {
    return new Value(id, "x" + id, tensor.type(), Span.NONE, true);
  }

  /** {@return the same call of other tensors} */
  RecordedCall of(List<HostTensor> others) {
    return new RecordedCall(
        line,
        def,
        args.stream().map(arg -> rebound(arg, others)).collect(ImmutableList.toImmutableList()),
        ImmutableList.copyOf(others),
        expected);
  }

  private static Arg rebound(Arg arg, List<HostTensor> others) {
    return switch (arg) {
      case Arg.Ref(Value value) -> new Arg.Ref(operand(value.id(), others.get(value.id())));
      case Arg.Seq(ImmutableList<Arg> items) ->
          new Arg.Seq(
              items.stream()
                  .map(item -> rebound(item, others))
                  .collect(ImmutableList.toImmutableList()));
      case Arg.Literal _ -> arg;
    };
  }

  /** {@return whether it is part of what the op computes where its operand lies} */
  boolean readsStrides() {
    return def.name().toString().equals("aten::as_strided_scatter");
  }

  /** {@return whether an argument is there and not its default} */
  boolean has(String param) {
    var schema = def.schema();
    return schema.hasParam(param)
        && !args.get(schema.indexOf(param))
            .equals(
                schema.params().get(schema.indexOf(param)).defaultValue().orElse(Arg.None.NONE));
  }

  /** {@return the results by the op's rule} */
  ImmutableList<OpResult> infer() {
    return def.infer(args).orElseThrow();
  }

  /** {@return the results, in the layout that the op's rule gives them} */
  List<Optional<HostTensor>> run() {
    return run(HostTensor::allocate);
  }

  /**
   * {@return the results}
   *
   * @param memory gives the tensor that takes a result of this type
   */
  List<Optional<HostTensor>> run(Function<TensorType, HostTensor> memory) {
    var results = new ArrayList<Optional<HostTensor>>();
    var values = ImmutableList.<Value>builder();
    boolean computes = def.schema().mutates();
    for (var result : infer()) {
      Type type = result.type();
      if (type instanceof TensorType tensor) {
        computes |= result.view().isEmpty();
        var target =
            result
                .view()
                .map(view -> seen(operands.get(view.of().id()), view.offset(), tensor))
                .orElseGet(() -> memory.apply(tensor));
        results.add(Optional.of(target));
        type = target.type();
      } else {
        results.add(Optional.empty());
      }
      values.add(
          new Value(
              operands.size() + results.size() - 1, "y" + results.size(), type, Span.NONE, false));
    }
    if (computes) {
      NaiveOps.run(
          new Op(def, args, values.build(), Span.NONE, Notes.NONE),
          value -> operands.get(value.id()),
          results);
    }
    return results;
  }

  private static HostTensor seen(HostTensor of, long offset, TensorType type) {
    long bytes = type.numel() == 0 ? 0 : offset * of.dtype().bytes();
    return new HostTensor(of.memory().asSlice(bytes), type);
  }

  /** {@return the same call, with copies of the tensors} */
  RecordedCall copied(UnaryOperator<HostTensor> copy) {
    return of(operands.stream().map(copy).toList());
  }

  @Override
  public String toString() {
    return "line %s: %s(%s)"
        .formatted(
            line,
            def.name(),
            args.stream().map(RecordedCall::text).collect(Collectors.joining(", ")));
  }

  private static String text(Arg arg) {
    return switch (arg) {
      case Arg.Ref(Value value) -> value.type().toString();
      case Arg.Seq(ImmutableList<Arg> items) ->
          items.stream().map(RecordedCall::text).toList().toString();
      case Arg.Int(long value) -> Long.toString(value);
      case Arg.Float(double value) -> Double.toString(value);
      case Arg.Bool(boolean value) -> Boolean.toString(value);
      case Arg.Str(String value) -> "'" + value + "'";
      case Arg.Dtype(DType value) -> value.shortName();
      case Arg.Symbol(String name) -> name;
      case Arg.Device(String name) -> name;
      case Arg.None _ -> "None";
    };
  }
}
