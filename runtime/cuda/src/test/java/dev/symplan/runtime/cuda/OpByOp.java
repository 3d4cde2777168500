package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.check.Reference;
import dev.symplan.runtime.host.NaiveOps;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.stream.LongStream;
import java.util.stream.Stream;

/**
 * Compares each op of a run with what the host makes of the same operands, those of the run.
 *
 * <p>Integers and bools must be the same. Floats may differ by a few of their steps, for ops that
 * add up by steps of the largest operand, and by what such errors in the operands change.
 */
final class OpByOp implements Reference.Observer {
  /** Elementwise functions of differences, near whose roots f32 has few digits. */
  private static final ImmutableSet<String> CANCELS =
      ImmutableSet.of("gelu", "gelu_backward", "mish_backward", "sinc", "special_log_ndtr");

  /** Which arguments keep f32's digits. */
  private static final ImmutableMap<String, Predicate<Op>> PARAMETERS =
      ImmutableMap.of(
          "logit", op -> op.args().getLast() instanceof Arg.None,
          "_fused_adam", OpByOp::hasDecays,
          "_fused_adamw", OpByOp::hasDecays,
          "norm", OpByOp::hasOrdinaryNorm,
          "linalg_vector_norm", OpByOp::hasOrdinaryNorm,
          "_foreach_norm", OpByOp::hasOrdinaryNorm);

  /** Beyond these sizes, what is squared or divided leaves f32. */
  private static final double MIN = 1e-9;

  private static final double MAX = 1e6;
  private static final double MAX_FACTOR = 100;
  private static final int STEPS = 4;
  private static final int DRAWS = 4;

  private final Session session;
  private final Map<Integer, Integer> outputOf = new HashMap<>();
  private final List<String> findings = new ArrayList<>();
  private int compared;

  private OpByOp(Graph graph, Session session) {
    this.session = session;
    for (var value : graph.outputValues()) {
      outputOf.putIfAbsent(value.id(), outputOf.size());
    }
  }

  /**
   * {@return the comparison}
   *
   * @param graph gives out all tensors that its ops compute
   * @param session has run it with its inputs
   */
  static OpByOp compare(Graph graph, Session session, Reference.Inputs inputs) {
    var check = new OpByOp(graph, session);
    Reference.evaluate(List.of(graph), List.of(), inputs, check);
    return check;
  }

  /** {@return the differences, a line each} */
  List<String> findings() {
    return findings;
  }

  /** {@return the number of results that were compared} */
  int compared() {
    return compared;
  }

  @Override
  public void before(int rank, Op op) {}

  @Override
  public void after(int rank, Op op, Function<Value, HostTensor> values) {
    var inferred = op.infer();
    for (int i = 0; i < op.results().size(); i++) {
      var result = op.results().get(i);
      if (result.isTensor()) {
        var wanted = values.apply(result);
        var given = session.output(rank, outputOf.get(result.id())).orElseThrow();
        if (!inferred.get(i).unspecified() && isSpecified(op, result, values)) {
          boolean view = inferred.get(i).view().isPresent();
          compared++;
          compare(op, i, given.contiguous(), wanted.contiguous(), view ? v -> wanted : values);
        }
        wanted.copyFrom(given);
      }
    }
  }

  /**
   * {@return whether f32 and f64 must agree about a result} Not where f32 overflows on the way or
   * parameters make digits vanish, in what a float becomes that an integer type lacks, and in
   * attentions and convolutions, some of which multiply a zero with NaN or infinity.
   */
  private static boolean isSpecified(Op op, Value result, Function<Value, HostTensor> values) {
    var name = op.def().name().name();
    boolean integer = result.tensor().dtype().kind() == DType.Kind.INTEGER;
    boolean product = name.contains("prod") && !name.contains("dot");
    boolean finite =
        product
            || CANCELS.contains(name)
            || name.contains("attention")
            || name.contains("convolution")
            || name.startsWith("_fused_adam");
    double most = integer ? Byte.MAX_VALUE : product ? MAX_FACTOR : MAX;
    return PARAMETERS.getOrDefault(name, _ -> true).test(op)
        && !(integer && name.endsWith("_backward"))
        && op.operands().stream()
            .filter(Value::isTensor)
            .map(operand -> parts(values.apply(operand).contiguous()))
            .filter(operand -> operand.dtype().isFloat() || product)
            .allMatch(operand -> isWithin(operand, most, finite || integer));
  }

  private static boolean isWithin(HostTensor floats, double most, boolean finite) {
    return LongStream.range(0, floats.type().numel())
        .mapToDouble(floats::get)
        .allMatch(
            x ->
                Double.isFinite(x)
                    ? x == 0 || (Math.abs(x) >= MIN && Math.abs(x) <= most)
                    : !finite);
  }

  private static boolean hasDecays(Op op) {
    return Stream.of("beta1", "beta2")
        .allMatch(beta -> op.arg(beta) instanceof Arg.Float(double b) && b >= 0 && b < 1);
  }

  private static boolean hasOrdinaryNorm(Op op) {
    return op.def().schema().params().stream()
        .filter(param -> param.name().equals("p") || param.name().equals("ord"))
        .map(param -> op.arg(param.name()).number())
        .flatMap(Optional::stream)
        .allMatch(p -> p.doubleValue() == 0 || (p.doubleValue() >= 0.5 && p.doubleValue() <= 4));
  }

  private void compare(
      Op op, int index, HostTensor given, HostTensor wanted, Function<Value, HostTensor> values) {
    var a = parts(given);
    var b = parts(wanted);
    double[] allowed = null;
    for (int i = 0; i < b.type().numel(); i++) {
      if (same(a, b, i)) {
        continue;
      }
      if (a.dtype().isFloat() && allowed == null) {
        allowed = allowed(op, index, b, values);
      }
      if (!a.dtype().isFloat() || !(Math.abs(a.get(i) - b.get(i)) <= allowed[i])) {
        findings.add(
            "%s (%s): element %s of result %s is %s, not %s"
                .formatted(op.label(), op.def().name(), i, index, text(a, i), text(b, i)));
        return;
      }
    }
  }

  private static boolean same(HostTensor a, HostTensor b, long i) {
    return a.dtype().isFloat()
        ? a.get(i) == b.get(i) || (Double.isNaN(a.get(i)) && Double.isNaN(b.get(i)))
        : a.getLong(i) == b.getLong(i);
  }

  private static String text(HostTensor tensor, long i) {
    return tensor.dtype().isFloat()
        ? Double.toString(tensor.get(i))
        : Long.toString(tensor.getLong(i));
  }

  /** {@return by how much each element of a float result may differ} */
  private double[] allowed(
      Op op, int index, HostTensor wanted, Function<Value, HostTensor> values) {
    int n = Math.toIntExact(wanted.type().numel());
    var changes = new double[n];
    var random = new SplittableRandom(1);
    for (int draw = 0; draw < DRAWS && !op.def().schema().mutates(); draw++) {
      var noisy = new HashMap<Integer, HostTensor>();
      for (var operand : op.operands()) {
        if (operand.isTensor()) {
          noisy.computeIfAbsent(
              operand.id(), _ -> withErrors(values.apply(operand), wanted.dtype(), random));
        }
      }
      var changed =
          parts(NaiveOps.run(op, v -> noisy.get(v.id())).get(index).orElseThrow().contiguous());
      for (int i = 0; i < n; i++) {
        double change = Math.abs(changed.get(i) - wanted.get(i));
        changes[i] = Math.max(changes[i], Double.isNaN(change) ? Double.MAX_VALUE : change);
      }
    }
    boolean elementwise = op.def().has(OpTrait.ELEMENTWISE);
    if (!elementwise) {
      double most = 0;
      for (var change : changes) {
        most = Math.max(most, change);
      }
      Arrays.fill(changes, 2 * most);
    }
    boolean cancels = !elementwise || CANCELS.contains(op.def().name().name());
    double largest = cancels ? largest(op, values) : 0;
    boolean complex = op.results().get(index).tensor().dtype().kind() == DType.Kind.COMPLEX;
    for (int i = 0; i < n; i++) {
      double size = Math.abs(wanted.get(i));
      if (complex) {
        // Rounding errors are those of a number of this size, whose smaller part may cancel.
        size = Math.max(size, Math.abs(wanted.get(i ^ 1)));
      }
      changes[i] += STEPS * step(wanted.dtype(), Math.max(largest, size));
    }
    return changes;
  }

  private static double largest(Op op, Function<Value, HostTensor> values) {
    double largest = 0;
    for (var operand : op.operands()) {
      var flat = parts(values.apply(operand).contiguous());
      for (long i = 0; i < flat.type().numel(); i++) {
        largest = Math.max(largest, Double.isFinite(flat.get(i)) ? Math.abs(flat.get(i)) : 0);
      }
    }
    return largest;
  }

  /** What GPUs give in f32, they compute of f32, whatever the operands are. */
  private static HostTensor withErrors(HostTensor tensor, DType wanted, SplittableRandom random) {
    var copy = tensor.copyAs(tensor.type().contiguous());
    var flat = parts(copy);
    var computed = wanted == DType.F64 || flat.dtype() != DType.F64 ? flat.dtype() : DType.F32;
    if (flat.dtype().isFloat()) {
      for (long i = 0; i < flat.type().numel(); i++) {
        double size = step(computed, Math.abs(flat.get(i)));
        flat.set(flat.get(i) + (random.nextBoolean() ? 2 : -2) * size, i);
      }
    }
    return copy;
  }

  /** {@return the elements in a row, those of complex numbers by their parts} */
  private static HostTensor parts(HostTensor contiguous) {
    var tensor =
        contiguous.dtype().kind() == DType.Kind.COMPLEX
            ? contiguous.as(contiguous.type().parts())
            : contiguous;
    return tensor.as(TensorType.contiguous(tensor.dtype(), tensor.type().numel()));
  }

  /** {@return the distance of numbers of this size} */
  private static double step(DType dtype, double size) {
    double finite = Double.isFinite(size) ? size : 0;
    return switch (dtype) {
      case F64 -> Math.ulp(finite);
      case F32 -> Math.max(Math.ulp((float) finite), Float.MIN_NORMAL);
      case F16 -> Math.max(0x1p-24, Math.ulp((float) finite) * 0x1p13);
      case BF16 -> Math.max(Math.ulp((float) finite) * 0x1p16, Float.MIN_NORMAL);
      case F8E4M3FN -> Math.max(0x1p-9, Math.ulp((float) finite) * 0x1p20);
      case F8E5M2 -> Math.max(0x1p-16, Math.ulp((float) finite) * 0x1p21);
      // Others are only moved.
      default -> 0;
    };
  }
}
