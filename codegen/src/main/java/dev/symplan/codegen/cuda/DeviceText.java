package dev.symplan.codegen.cuda;

import dev.symplan.codegen.cuda.DeviceStep.Launch;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.Objects;
import java.util.stream.Collectors;

/** Device programs as people read them: a step on each line, and each kernel's source once. */
public final class DeviceText {
  private DeviceText() {}

  /** {@return the text; the same program gives the same one} */
  public static String of(DeviceProgram program) {
    var kernels = new LinkedHashMap<String, Integer>();
    var lines = new ArrayList<String>();
    for (var step : program.steps()) {
      if (step instanceof Launch launch) {
        kernels.putIfAbsent(launch.kernel().text(), kernels.size());
        lines.add(
            "%s: kernel %d <<<%d, %d>>> %s %s"
                .formatted(
                    launch.label(),
                    Objects.requireNonNull(kernels.get(launch.kernel().text())),
                    launch.blocks(),
                    launch.threads(),
                    launch.stream().text(),
                    launch.words().stream()
                        .map(Object::toString)
                        .collect(Collectors.joining(" "))));
      } else {
        lines.add(step.toString());
      }
    }
    kernels.forEach((text, number) -> lines.add("\n// kernel " + number + "\n" + text));
    return String.join("\n", lines) + "\n";
  }
}
