package dev.symplan.ir.pt2;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.fx.ImportOptions;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.ir.text.GraphPrinter;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Whatever is done to an archive, its import ends soon, with a program or with diagnostics. */
@Tag("random")
class ArchiveDamageTest {
  private static final long SEED = Fuzz.seed(20261121);
  private static final int ROUNDS = 750;

  private static final Pattern VALUE =
      Pattern.compile("\"[^\"]*\"|-?[0-9]+|true|false|null|\\{[^{}]*}|\\[[^\\[\\]]*]");

  private static final List<String> WORDS =
      List.of(
          "null",
          "-1",
          "9e99",
          "99999999999999999999",
          "[]",
          "{}",
          "\"\"",
          "\"as_int\"",
          "true",
          "7",
          "\"torch.ops.\"",
          "\"torch.ops.aten\"",
          "{\"as_none\": true}",
          "\"Symbol('s27')\"",
          "\"x\"");

  @TempDir private Path folder;

  /** {@return whether the archive is still read} */
  private static boolean reads(Path file, String what) {
    try {
      var archive = ExportArchive.open(file);
      var named = ImportOptions.named("m");
      var program =
          archive.program(
              new ImportOptions(
                  "m",
                  named.groups(),
                  2,
                  ImmutableMap.of("s27", 4L),
                  ImmutableMap.of(),
                  named.registry()),
              _ -> {});
      var text = GraphPrinter.print(program);
      var parsed = GraphParser.parse(new SourceFile("m.graph", text));
      assertThat(GraphPrinter.print(parsed)).as(what).isEqualTo(text);
      archive.models().forEach(archive::weights);
      return true;
    } catch (CompileException e) {
      assertThat(e.diagnostics()).isNotEmpty();
      return false;
    } catch (RuntimeException | StackOverflowError | OutOfMemoryError e) {
      throw new AssertionError(what, e);
    }
  }

  @Test
  void bytesOfTheFile() throws IOException {
    var random = new Random(SEED);
    var sound = Files.readAllBytes(Archives.sample("counter"));
    var file = folder.resolve("damaged.pt2");
    var read = new AtomicInteger();
    Fuzz.each(
        ROUNDS,
        round -> {
          var bytes = sound.clone();
          // The directory and the headers, at the end, are met as often as all else.
          int from = round % 2 == 0 ? 0 : bytes.length - 1500;
          for (int i = random.nextInt(3); i >= 0; i--) {
            bytes[from + random.nextInt(bytes.length - from)] = (byte) random.nextInt();
          }
          if (round % 5 == 0) {
            bytes = Arrays.copyOf(bytes, random.nextInt(bytes.length));
          }
          Files.write(file, bytes);
          read.addAndGet(reads(file, "seed %s, round %s".formatted(SEED, round)) ? 1 : 0);
        });
    assertThat(read.get()).isBetween(1, Fuzz.times(ROUNDS) - 1);
  }

  @Test
  void textOfTheEntries() throws IOException {
    var random = new Random(SEED + 1);
    for (var sample : new String[] {"block", "tp_mlp", "shared"}) {
      var sound = Archives.entries(Archives.sample(sample));
      var read = new AtomicInteger();
      Fuzz.each(
          ROUNDS / 3,
          round -> {
            var entries = new LinkedHashMap<>(sound);
            var entry = round % 4 == 0 ? Archives.WEIGHTS : Archives.MODEL;
            var text = new String(Objects.requireNonNull(sound.get(entry)), StandardCharsets.UTF_8);
            // A JSON value is replaced, so that what is left is mostly JSON.
            var values = VALUE.matcher(text).results().toList();
            var edited = new StringBuilder(text);
            var value = values.get(random.nextInt(values.size()));
            edited.replace(value.start(), value.end(), WORDS.get(random.nextInt(WORDS.size())));
            entries.put(entry, edited.toString().getBytes(StandardCharsets.UTF_8));
            var file = Archives.write(folder.resolve("damaged.pt2"), entries, false);
            read.addAndGet(
                reads(file, "seed %s, %s, round %s".formatted(SEED + 1, sample, round)) ? 1 : 0);
          });
      assertThat(read.get()).as(sample).isBetween(1, Fuzz.times(ROUNDS / 3) - 1);
    }
  }
}
