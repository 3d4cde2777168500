package dev.symplan.runtime.cuda.library;

import com.google.common.base.CharMatcher;
import com.google.common.base.Splitter;
import com.google.common.collect.ImmutableList;
import dev.symplan.runtime.doctor.Machine.Setting;
import dev.symplan.runtime.launch.Secret;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.stream.Stream;

/**
 * The variables that change how libraries behave, where they are searched for, and which process is
 * which rank. NCCL reads files, too: what they set counts where the environment does not.
 */
final class Settings {
  private static final ImmutableList<String> PREFIXES =
      ImmutableList.of(
          "CUDA_",
          "NCCL_",
          "NVSHMEM_",
          "OMPI_COMM_WORLD_",
          "SLURM_STEP_",
          "SYMPLAN_",
          "TORCH_SYMM_MEM_");

  private static final ImmutableList<String> NAMES =
      ImmutableList.of(
          "CONDA_PREFIX",
          "LD_LIBRARY_PATH",
          "LOCAL_RANK",
          "LOCAL_WORLD_SIZE",
          "MASTER_ADDR",
          "MASTER_PORT",
          "NVIDIA_VISIBLE_DEVICES",
          "RANK",
          "SLURM_LOCALID",
          "SLURM_PROCID",
          "VIRTUAL_ENV",
          "WORLD_SIZE");

  private Settings() {}

  /** {@return the settings in force, by name} */
  static ImmutableList<Setting> of(Map<String, String> environment) {
    var settings = new TreeMap<String, Setting>();
    environment.forEach(
        (name, value) -> {
          if (NAMES.contains(name) || PREFIXES.stream().anyMatch(name::startsWith)) {
            // Reports are shown to others: a secret is not in them.
            var shown = name.equals(Secret.TOKEN) ? "not shown" : value;
            settings.put(name, new Setting(name, shown, Setting.ENVIRONMENT));
          }
        });
    Libraries.SETTINGS.forEach(
        (name, value) -> settings.putIfAbsent(name, new Setting(name, value, Setting.SYMPLAN)));
    files(environment)
        .flatMap(Settings::read)
        .forEach(setting -> settings.putIfAbsent(setting.name(), setting));
    return ImmutableList.copyOf(settings.values());
  }

  /** {@return the user's file, then the machine's, in which NCCL finds variables} */
  private static Stream<Path> files(Map<String, String> environment) {
    var user =
        Optional.ofNullable(environment.get("NCCL_CONF_FILE"))
            .map(Path::of)
            .or(
                () ->
                    Optional.ofNullable(environment.get("HOME"))
                        .map(home -> Path.of(home, ".nccl.conf")));
    return Stream.concat(user.stream(), Stream.of(Path.of("/etc/nccl.conf")));
  }

  private static Stream<Setting> read(Path file) {
    if (!Files.isReadable(file)) {
      return Stream.of();
    }
    try {
      return Files.readAllLines(file).stream()
          .map(line -> Splitter.on('=').trimResults().limit(2).splitToList(line))
          .filter(Settings::isVariable)
          .map(parts -> new Setting(parts.get(0), parts.get(1), file.toString()));
    } catch (IOException e) {
      return Stream.of();
    }
  }

  private static boolean isVariable(List<String> parts) {
    return parts.size() == 2
        && CharMatcher.inRange('A', 'Z')
            .or(CharMatcher.inRange('0', '9'))
            .or(CharMatcher.is('_'))
            .matchesAllOf(parts.getFirst());
  }
}
