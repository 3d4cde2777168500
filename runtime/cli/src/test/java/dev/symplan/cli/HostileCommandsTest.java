package dev.symplan.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableListMultimap;
import dev.symplan.ir.testkit.Fuzz;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Whatever options and files a command is given, it ends with a result or a message. */
@Tag("random")
class HostileCommandsTest {
  private static final long SEED = Fuzz.seed(20_261_123);
  private static final Path SAMPLES =
      Path.of(System.getProperty("symplan.root", "../..")).resolve("samples");

  private static final Pattern TOKEN =
      Pattern.compile("[A-Za-z_][A-Za-z_0-9.]*|-?[0-9]+|\"[^\"\\n]*\"|\\s+|.");

  private static final Pattern OPTION = Pattern.compile("(?m)^ +(?:-.,)? +(--[a-z-]+)");

  private static final ImmutableList<String> VALUES =
      ImmutableList.of(
          "",
          "-1",
          "0",
          "1",
          "2",
          "3",
          "4",
          "8",
          "64",
          "99999999999999999999",
          "1e9",
          "nan",
          "x",
          "=",
          "x=1",
          "s77=-1",
          "r=symm",
          "x=symm",
          "out=local",
          "all_reduce=two_shot",
          "r=one_shot_push",
          "all_gather_into_tensor=nccl",
          "symm",
          "external",
          "local",
          "auto",
          "on",
          "off",
          "host",
          "h200x8",
          "summary",
          "values,memory",
          "peak",
          "code",
          "graph",
          "json",
          "csv",
          "dot",
          "perfetto",
          "model-explorer",
          "%s%n",
          "\u0000",
          "ü");

  /** A text that is put in the place of a token. */
  private static final ImmutableList<String> WORDS =
      ImmutableList.of(
          "-1",
          "0",
          "1",
          "65536",
          "2147483648",
          "9223372036854775807",
          "99999999999999999999",
          "1e999",
          "null",
          "[]",
          "{}",
          "\"\"",
          "\"x\"",
          "true",
          "nan",
          "graph",
          "return",
          ",",
          "(",
          "]",
          "f32",
          "@symm",
          "None",
          "\u0000",
          "\ud800");

  private static final ImmutableListMultimap<String, String> INPUTS =
      ImmutableListMultimap.<String, String>builder()
          .putAll("compile", "graph", "fx", "pt2", "hlo")
          .putAll("dump", "graph", "plan", "plan")
          .putAll("explain", "graph", "plan")
          .putAll("diff", "plan")
          .putAll("compare-xla", "hlo", "buffers")
          .putAll("verify", "plan", "plan", "graph")
          .putAll("simulate", "plan", "graph")
          .putAll("import", "graph", "fx", "pt2")
          .putAll("run", "graph", "plan")
          .putAll("pack", "csv")
          .putAll("calibrate", "points")
          .putAll("ops", "ops")
          .build();

  private static final Set<String> TWO_INPUTS = Set.of("diff", "compare-xla");

  private static final String MODULE =
      """
      HloModule m, is_scheduled=true, num_partitions=2

      ENTRY %main (x: f32[2,4]) -> f32[4,4] {
        %x = f32[2,4]{1,0} parameter(0)
        %w = (f32[2,4]{1,0}, s8[64]{0}) custom-call(%x), custom_call_target="work"
        ROOT %g = f32[4,4]{1,0} all-gather(%w#0), channel_id=1, replica_groups={{0,1}}, \
      dimensions={0}, use_global_device_ids=true
      }
      """;

  private static final String BUFFERS_OF_XLA =
      """
      BufferAssignment:
      allocation 0: size 32, page 0, parameter 0, shape |f32[2,4]| at ShapeIndex {}:
       value: <0 x @0> (size=32,offset=0): f32[2,4]{1,0}
      allocation 1: size 64, page 0, output shape is |f32[4,4]|, maybe-live-out:
       value: <2 g @0> (size=64,offset=0): f32[4,4]{1,0}
      """;

  @TempDir private Path folder;

  private final ImmutableListMultimap.Builder<String, byte[]> sound =
      ImmutableListMultimap.builder();

  @BeforeEach
  void makeFiles() throws IOException {
    for (var sample : List.of("tp_mlp.graph", "fsdp_layer.graph")) {
      var graph = SAMPLES.resolve(sample);
      var plan = folder.resolve("sound.json");
      assertThat(Ran.run("compile", graph, "-o", plan).code()).isZero();
      sound.put("graph", Files.readAllBytes(graph));
      sound.put("plan", Files.readAllBytes(plan));
    }
    sound.put("fx", Files.readAllBytes(SAMPLES.resolve("cases/fsdp_mlp_train_bwd/graph.fx.txt")));
    sound.put("pt2", Files.readAllBytes(SAMPLES.resolve("export/tp_mlp/graph.pt2")));
    sound.put("csv", PackCommandTest.BUFFERS.getBytes(StandardCharsets.UTF_8));
    sound.put(
        "points", Files.readAllBytes(SAMPLES.resolve("../docs/figures/collectives-2xh200.csv")));
    sound.put("hlo", MODULE.getBytes(StandardCharsets.UTF_8));
    sound.put("buffers", BUFFERS_OF_XLA.getBytes(StandardCharsets.UTF_8));
    sound.put("ops", "aten::(add|mul)".getBytes(StandardCharsets.UTF_8));
  }

  @Test
  void endWithAResultOrAMessage() {
    var files = sound.build();
    var random = new Random(SEED);
    var commands = INPUTS.keySet().asList();
    var options = ImmutableListMultimap.<String, String>builder();
    for (var command : commands) {
      OPTION
          .matcher(Ran.run(command, "--help").out())
          .results()
          .map(match -> match.group(1))
          // These write, or measure.
          .filter(name -> !name.matches("--(output|outputs|dump-dir|profile|weights|help|version)"))
          .forEach(name -> options.put(command, name));
    }
    var names = options.build();
    var codes = new int[71];
    Fuzz.each(
        1_500,
        i -> {
          var command = commands.get(random.nextInt(commands.size()));
          var words = words(command, names.get(command), files, random);
          var ran = Ran.run(words.toArray());
          assertThat(ran.code())
              .as("seed %s, command %s: %s%n%s", SEED, i, words, ran.err())
              .isBetween(0, 4);
          codes[ran.code()]++;
        });
    System.out.printf("exit codes 0, 1, 2: %s, %s, %s%n", codes[0], codes[1], codes[2]);
    assertThat(List.of(codes[0], codes[1], codes[2])).allMatch(count -> count > 50);
  }

  private List<String> words(
      String command,
      List<String> names,
      ImmutableListMultimap<String, byte[]> files,
      Random random)
      throws IOException {
    var words = new ArrayList<>(List.of(command));
    for (int inputs = TWO_INPUTS.contains(command) ? 2 : 1; inputs > 0; inputs--) {
      var kind = pick(INPUTS.get(command), random);
      var bytes = damaged(pick(files.get(kind), random), random);
      var file = folder.resolve(inputs + "." + kind);
      Files.write(file, bytes);
      words.add(kind.equals("ops") ? new String(bytes, StandardCharsets.UTF_8) : file.toString());
    }
    switch (command) {
      case "explain" -> words.add(pick(List.of("r", "y", "x", "", "_", "--peak"), random));
      case "calibrate" -> words.addAll(List.of("-o", folder.resolve("target").toString()));
      case "pack" -> words.addAll(List.of("--seconds", "0.1"));
      default -> {}
    }
    for (int count = random.nextInt(4) - 1; count > 0 && !names.isEmpty(); count--) {
      var name = pick(names, random);
      words.add(name + (random.nextInt(4) == 0 ? "" : "=" + pick(VALUES, random)));
    }
    return words;
  }

  private static <T> T pick(List<T> list, Random random) {
    return list.get(random.nextInt(list.size()));
  }

  private static byte[] damaged(byte[] sound, Random random) {
    return switch (random.nextInt(4)) {
      case 0 -> sound;
      case 1 -> {
        var bytes = sound.clone();
        for (int i = random.nextInt(3); i >= 0; i--) {
          bytes[random.nextInt(bytes.length)] = (byte) random.nextInt();
        }
        yield Arrays.copyOf(
            bytes, random.nextInt(4) == 0 ? random.nextInt(bytes.length) : bytes.length);
      }
      default -> {
        var tokens =
            new ArrayList<>(
                TOKEN
                    .matcher(new String(sound, StandardCharsets.ISO_8859_1))
                    .results()
                    .map(match -> match.group())
                    .toList());
        for (int i = random.nextInt(3); i >= 0; i--) {
          int at = random.nextInt(tokens.size());
          switch (random.nextInt(4)) {
            case 0 -> tokens.set(at, "");
            case 1 -> tokens.set(at, tokens.get(random.nextInt(tokens.size())));
            case 2 -> tokens.add(at, tokens.get(at));
            default -> tokens.set(at, pick(WORDS, random));
          }
        }
        yield String.join("", tokens).getBytes(StandardCharsets.ISO_8859_1);
      }
    };
  }
}
