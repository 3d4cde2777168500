package dev.symplan.codegen.cuda;

import com.google.common.base.Ascii;
import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Address;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.DeviceStep.Attention;
import dev.symplan.codegen.cuda.DeviceStep.AttentionBackward;
import dev.symplan.codegen.cuda.DeviceStep.Await;
import dev.symplan.codegen.cuda.DeviceStep.Convolution;
import dev.symplan.codegen.cuda.DeviceStep.Copy;
import dev.symplan.codegen.cuda.DeviceStep.CopyRows;
import dev.symplan.codegen.cuda.DeviceStep.HopperLaunch;
import dev.symplan.codegen.cuda.DeviceStep.Launch;
import dev.symplan.codegen.cuda.DeviceStep.Mark;
import dev.symplan.codegen.cuda.DeviceStep.Matrix;
import dev.symplan.codegen.cuda.DeviceStep.Nccl;
import dev.symplan.codegen.cuda.DeviceStep.NcclCall;
import dev.symplan.codegen.cuda.DeviceStep.Product;
import dev.symplan.codegen.cuda.DeviceStep.Scales;
import dev.symplan.codegen.cuda.DeviceStep.Scores;
import dev.symplan.codegen.cuda.DeviceStep.Share;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Collectors;

/** Device programs as people read them: a step on each line, and each kernel's source once. */
public final class DeviceText {
  private DeviceText() {}

  /**
   * {@return the text; the same programs give the same one}
   *
   * @param shown how many ranks' steps are shown; the kernels are those of all
   */
  public static String of(List<DeviceProgram> programs, int shown) {
    var numbers = new LinkedHashMap<String, Integer>();
    for (var program : programs) {
      for (var step : program.steps()) {
        for (var launch : step.launches()) {
          numbers.putIfAbsent(launch.kernel().text(), numbers.size());
        }
      }
    }
    var lines = new ArrayList<String>();
    for (var program : programs.subList(0, Math.min(shown, programs.size()))) {
      lines.add("rank " + program.rank());
      program.steps().forEach(step -> lines.add("  " + text(step, numbers)));
    }
    numbers.forEach((kernel, number) -> lines.add("\n// kernel " + number + "\n" + kernel));
    return String.join("\n", lines) + "\n";
  }

  private static String text(DeviceStep step, Map<String, Integer> numbers) {
    var stream = step.stream().text();
    return switch (step) {
      case Launch launch ->
          "%s: kernel %s <<<%s, %s%s>>> %s%s %s"
              .formatted(
                  launch.shares().isEmpty()
                      ? launch.label()
                      : launch.shares().stream()
                          .map(Share::label)
                          .collect(Collectors.joining(" + ")),
                  Objects.requireNonNull(numbers.get(launch.kernel().text())),
                  launch.blocks(),
                  launch.threads(),
                  launch.sharedBytes() > 0 ? ", " + launch.sharedBytes() : "",
                  stream,
                  launch.dependent() ? " dependent" : "",
                  launch.words().stream().map(DeviceText::text).collect(Collectors.joining(" ")));
      case HopperLaunch(var launch, var otherwise, boolean _) ->
          "%s; otherwise %s".formatted(text(launch, numbers), otherwise(otherwise, numbers));
      case Copy copy ->
          "%s: copy %s %s → %s, %s bytes"
              .formatted(copy.label(), stream, text(copy.from()), text(copy.to()), copy.bytes());
      case CopyRows copy ->
          "%s: copy %s %s by %s → %s by %s, %s rows of %s bytes"
              .formatted(
                  copy.label(),
                  stream,
                  text(copy.from()),
                  copy.fromPitch(),
                  text(copy.to()),
                  copy.toPitch(),
                  copy.rows(),
                  copy.bytes());
      case Product product ->
          text(product)
              + product
                  .scales()
                  .map(scales -> "; otherwise " + otherwise(scales.otherwise(), numbers))
                  .orElse("");
      case Attention attention ->
          "%s: attention %s %s · %s → %s%s; otherwise %s"
              .formatted(
                  attention.label(),
                  stream,
                  text(attention.scores()),
                  attention.value(),
                  attention.out(),
                  attention.logs().map(logs -> ", " + logs).orElse(""),
                  otherwise(attention.otherwise(), numbers));
      case AttentionBackward attention ->
          "%s: attention %s %s · %s, %s, %s, gradient %s → %s, %s, %s; otherwise %s"
              .formatted(
                  attention.label(),
                  stream,
                  text(attention.scores()),
                  attention.value(),
                  attention.out(),
                  attention.logs(),
                  attention.grad(),
                  attention.ofQuery(),
                  attention.ofKey(),
                  attention.ofValue(),
                  otherwise(attention.otherwise(), numbers));
      case Convolution convolution ->
          "%s: convolution %s %s → %s, %s; otherwise %s"
              .formatted(
                  convolution.label(),
                  stream,
                  operands(convolution),
                  result(convolution),
                  convolution.windows(),
                  otherwise(convolution.otherwise(), numbers));
      case Nccl nccl ->
          "%s: nccl %s ranks %s, position %s, self %s%s%s: %s"
              .formatted(
                  nccl.label(),
                  stream,
                  nccl.members(),
                  nccl.pad(),
                  nccl.self(),
                  nccl.windows() ? ", windows" : "",
                  nccl.copyEngines() ? ", copy engines" : "",
                  nccl.calls().stream().map(DeviceText::text).collect(Collectors.joining("; ")));
      case Mark(var _, int event) -> "%s: mark %s".formatted(stream, event);
      case Await(var _, int event) -> "%s: await %s".formatted(stream, event);
    };
  }

  private static String otherwise(ImmutableList<DeviceStep> steps, Map<String, Integer> numbers) {
    return steps.stream().map(step -> text(step, numbers)).collect(Collectors.joining("; "));
  }

  private static String operands(Convolution convolution) {
    return switch (convolution.pass()) {
      case FORWARD -> "forward %s, %s".formatted(convolution.large(), convolution.weight());
      case BACKWARD_DATA ->
          "backward data %s, %s".formatted(convolution.small(), convolution.weight());
      case BACKWARD_FILTER ->
          "backward filter %s, %s".formatted(convolution.small(), convolution.large());
    };
  }

  private static TensorRef result(Convolution convolution) {
    return switch (convolution.pass()) {
      case FORWARD -> convolution.small();
      case BACKWARD_DATA -> convolution.large();
      case BACKWARD_FILTER -> convolution.weight();
    };
  }

  private static String text(Scores scores) {
    return "softmax(%s%s · %s%s%s)"
        .formatted(
            factor(scores.scale()),
            scores.query(),
            scores.key(),
            scores.bias().map(bias -> " + " + bias).orElse(""),
            scores.causal() ? ", causal" : "");
  }

  private static String text(Product product) {
    var out = new StringBuilder();
    out.append(
        "%s: product %s %s %s×%s×%s: %s = "
            .formatted(
                product.label(),
                product.stream().text(),
                types(product),
                product.rows(),
                product.inner(),
                product.columns(),
                text(product.result())));
    if (product.beta() != 0) {
      out.append(factor(product.beta())).append(text(product.addend())).append(" + ");
    }
    out.append(factor(product.alpha()));
    out.append(text(product.left())).append(" · ").append(text(product.right()));
    product.bias().ifPresent(bias -> out.append(" + bias ").append(text(bias)));
    product.scales().ifPresent(scales -> out.append(text(scales)));
    return out.append(product.batches() == 1 ? "" : ", %s times".formatted(product.batches()))
        .toString();
  }

  /** One type where all matrices have the same. */
  private static String types(Product product) {
    var result = product.dtype().shortName();
    return product.scales().isEmpty()
        ? result
        : "%s·%s→%s"
            .formatted(
                product.left().dtype().shortName(), product.right().dtype().shortName(), result);
  }

  private static String text(Scales scales) {
    return ", scaled by %s and %s%s%s"
        .formatted(
            text(scales.left()),
            text(scales.right()),
            scales.byLine() ? ", by line" : "",
            scales.fast() ? ", fast" : "");
  }

  private static String factor(double factor) {
    return factor == 1 ? "" : factor + " · ";
  }

  private static String text(Matrix matrix) {
    return "%s%s[leading %s%s]"
        .formatted(
            text(matrix.address()),
            matrix.transposed() ? "ᵀ" : "",
            matrix.leading(),
            matrix.batchStride() == 0 ? "" : ", batch " + matrix.batchStride());
  }

  private static String text(NcclCall call) {
    return "%s %s → %s, %s × %s%s%s"
        .formatted(
            Ascii.toLowerCase(call.function().name()),
            text(call.from()),
            text(call.to()),
            call.count(),
            call.dtype().shortName(),
            call.reduceOp().map(op -> " " + op).orElse(""),
            call.peer() < 0 ? "" : ", peer " + call.peer());
  }

  private static String text(Address at) {
    if (at.isScratch()) {
      return "r%s:scratch+%s".formatted(at.rank(), at.offset());
    }
    return "r%s:%s%s+%s"
        .formatted(at.rank(), at.arena().text(), at.index() == 0 ? "" : at.index(), at.offset());
  }

  private static String text(KernelArgument word) {
    return switch (word) {
      case KernelArgument.Number(long value) -> Long.toString(value);
      case KernelArgument.Memory(var at, long _) -> text(at);
      case KernelArgument.TensorMap map ->
          "map[%s by %s, %s by %s, %s, boxes of %s]%s"
              .formatted(
                  map.matrices(),
                  map.matrixPitch(),
                  map.lines(),
                  map.pitch(),
                  map.near(),
                  map.boxLines(),
                  text(map.address()));
      case KernelArgument.Multicast(var members, long offset, long _) ->
          "%s:symmetric+%s".formatted(members, offset);
      case KernelArgument.Flags(int pad, int rank) -> "r%s:flags%s".formatted(rank, pad);
      case KernelArgument.Meetings(int pad) -> "meetings" + pad;
      case KernelArgument.Failure _ -> "failure";
      case KernelArgument.Timeout _ -> "timeout";
    };
  }
}
