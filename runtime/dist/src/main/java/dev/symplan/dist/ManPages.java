package dev.symplan.dist;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.regex.Pattern;

/** Makes a page for {@code man} of what each command says with {@code --help}. */
public final class ManPages {
  private static final Pattern COMMAND =
      Pattern.compile("^Commands:\\n((?: {2}.*\\n?)*)", Pattern.MULTILINE);
  private static final Pattern NAME = Pattern.compile("^ {2}([a-z-]+) ", Pattern.MULTILINE);

  private ManPages() {}

  /**
   * @param args the folder of the jars, the folder to write to, the version
   */
  public static void main(String[] args) throws IOException, InterruptedException {
    var folder = Files.createDirectories(Path.of(args[1]));
    var help = help(args[0], List.of());
    write(folder, "symplan", help, args[2]);
    var commands = COMMAND.matcher(help);
    if (!commands.find()) {
      throw new IllegalStateException("no commands in: " + help);
    }
    for (var name : NAME.matcher(commands.group(1)).results().map(n -> n.group(1)).toList()) {
      write(folder, "symplan-" + name, help(args[0], List.of(name)), args[2]);
    }
  }

  private static String help(String jars, List<String> command)
      throws IOException, InterruptedException {
    var words =
        new ArrayList<>(
            List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--enable-native-access=ALL-UNNAMED",
                "-cp",
                jars + "/*",
                "dev.symplan.cli.Main"));
    words.addAll(command);
    words.add("--help");
    var process = new ProcessBuilder(words).redirectErrorStream(true).start();
    var text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    if (process.waitFor() != 0) {
      throw new IllegalStateException("%s: %s".formatted(command, text));
    }
    return text;
  }

  private static void write(Path folder, String name, String help, String version)
      throws IOException {
    Files.writeString(folder.resolve(name + ".1"), page(name, help.strip(), version));
  }

  private static String page(String name, String help, String version) {
    return """
    .TH "%s" 1 "" "Symplan %s"
    .SH NAME
    %s \\- tensor graphs for several GPUs
    .SH DESCRIPTION
    .nf
    %s
    .fi
    """
        .formatted(name.toUpperCase(Locale.ROOT), version, escaped(name), escaped(help));
  }

  /** A dot or a quote at the beginning of a line would be a request. */
  private static String escaped(String text) {
    return text.replace("\\", "\\e").replace("-", "\\-").replaceAll("(?m)^([.'])", "\\\\&$1");
  }
}
