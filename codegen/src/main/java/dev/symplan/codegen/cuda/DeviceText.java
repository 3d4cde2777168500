package dev.symplan.codegen.cuda;

import dev.symplan.codegen.cuda.DeviceStep.Launch;
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
        if (step instanceof Launch launch) {
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
    return step instanceof Launch launch
        ? "%s: kernel %d <<<%d, %d>>> %s %s"
            .formatted(
                launch.label(),
                Objects.requireNonNull(numbers.get(launch.kernel().text())),
                launch.blocks(),
                launch.threads(),
                launch.stream().text(),
                launch.words().stream().map(DeviceText::text).collect(Collectors.joining(" ")))
        : step.toString();
  }

  private static String text(KernelArgument word) {
    return switch (word) {
      case KernelArgument.Number(long value) -> Long.toString(value);
      case KernelArgument.Memory(var at, long _) ->
          "r%d:%s%s+%d"
              .formatted(
                  at.rank(), at.arena().text(), at.index() == 0 ? "" : at.index(), at.offset());
      case KernelArgument.Multicast(var members, long offset, long _) ->
          "%s:symmetric+%d".formatted(members, offset);
      case KernelArgument.Flags(int place, int rank) -> "r%d:flags%d".formatted(rank, place);
      case KernelArgument.Meetings(int place) -> "meetings" + place;
      case KernelArgument.Failure _ -> "failure";
      case KernelArgument.Timeout _ -> "timeout";
    };
  }
}
