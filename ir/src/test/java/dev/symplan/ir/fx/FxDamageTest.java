package dev.symplan.ir.fx;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.ir.text.GraphPrinter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Whatever is done to a text, its import ends soon, with a program or with diagnostics. */
@Tag("random")
class FxDamageTest {
  private static final Pattern TOKEN =
      Pattern.compile("[A-Za-z_][A-Za-z_0-9.]*|[0-9]+|\"[^\"\\n]*\"|\\s+|.");

  private static final List<String> WORDS =
      List.of(
          "99999999999",
          "-1",
          "65535",
          "None",
          "[]",
          "()",
          "torch.ops.aten.add.Tensor",
          "nan",
          "-inf",
          "self",
          "'",
          "\"",
          "{",
          "}",
          "\"Sym(\"",
          "\"Sym(x)\"",
          "\"f32[-1]\"",
          "\"f32[99999999999, 99999999999]\"",
          "\n        return",
          "\n    def forward(self):",
          "[rank1]:",
          "#",
          "\\");

  private static final String EVERY_FORM =
      FxTexts.listing(
          "s: \"Sym(s77)\", x: \"f32[s77, 4*s77][4*s77, 1]cuda:0\"",
          """
          mul: "Sym(4*s77)" = s * 4
          ge: "Sym(s77 >= 2)" = s >= 2
          _assert_scalar = torch.ops.aten._assert_scalar.default(ge, 'no');  ge = None
          op = torch.ops.symm_mem.fused_all_gather_matmul.default(x, [x], 0, '0', return_A = False)
          getitem = op[0]
          getitem_1 = op[1]
          getitem_2: "f32[s77, 8][8, 1]cuda:0" = getitem_1[0]
          split = torch.ops.aten.split.Tensor(x, 2)
          cat: "f32[s77, 4*s77][4*s77, 1]cuda:0" = torch.ops.aten.cat.default(split)
          full: "f32[4][1]cuda:0" = torch.ops.aten.full.default([4], -inf, dtype = torch.float32, \
          layout = torch.strided, device = device(type='cuda', index=0), pin_memory = False)
          return (cat, None, mul, getitem_2)
          """);

  static Stream<String> texts() throws IOException {
    var cases = Path.of(System.getProperty("symplan.root", "..")).resolve("samples/cases");
    return Stream.of(
        EVERY_FORM,
        FxTexts.logged(0, "post_grad_graphs", EVERY_FORM)
            + FxTexts.logged(1, "post_grad_graphs", EVERY_FORM),
        Files.readString(cases.resolve("fsdp_mlp_train_bwd/graph.fx.txt")),
        Files.readString(cases.resolve("plan/moe_ep8.0.fx.txt")));
  }

  @ParameterizedTest
  @MethodSource("texts")
  void givesAProgramOrDiagnostics(String text) {
    long seed = Fuzz.seed(20261121) + text.length();
    var random = new Random(seed);
    var tokens = TOKEN.matcher(text).results().map(MatchResult::group).toList();
    var programs = new AtomicInteger();
    Fuzz.each(
        300,
        i -> {
          var damaged = random.nextBoolean() ? bytes(text, random) : tokens(tokens, random);
          try {
            var program =
                FxImporter.read(
                    new SourceFile("damaged.fx.txt", damaged),
                    FxTexts.options(
                        random.nextInt(2) * 8, ImmutableMap.of("s77", random.nextLong(8))),
                    warning -> assertThat(warning.render()).isNotEmpty());
            programs.incrementAndGet();
            if (random.nextInt(16) == 0) {
              assertThat(GraphPrinter.withTypes(program)).isNotEmpty();
            }
          } catch (CompileException e) {
            assertThat(e.diagnostics()).as("seed %s, text %s", seed, i).isNotEmpty();
          } catch (RuntimeException | StackOverflowError e) {
            throw new AssertionError("seed %s, text %s: %s".formatted(seed, i, damaged), e);
          }
        });
    assertThat(programs.get()).as("seed %s", seed).isBetween(1, Fuzz.times(300) / 2);
  }

  private static String bytes(String text, Random random) {
    var out = new StringBuilder(text);
    for (int edits = 1 + random.nextInt(3); edits > 0; edits--) {
      int at = random.nextInt(out.length());
      switch (random.nextInt(5)) {
        case 0 -> out.deleteCharAt(at);
        case 1 -> out.insert(at, (char) random.nextInt(random.nextInt(4) == 0 ? 0xFFFF : 128));
        case 2 -> out.setCharAt(at, out.charAt(random.nextInt(out.length())));
        case 3 -> out.setLength(Math.max(1, at));
        default -> {
          int length = Math.min(random.nextInt(200), out.length() - at);
          out.insert(at, out.substring(at, at + length));
        }
      }
    }
    return out.toString();
  }

  private static String tokens(List<String> tokens, Random random) {
    var out = new ArrayList<>(tokens);
    for (int edits = 1 + random.nextInt(3); edits > 0; edits--) {
      int at = random.nextInt(out.size());
      switch (random.nextInt(5)) {
        case 0 -> out.remove(at);
        case 1 -> out.add(at, out.get(random.nextInt(out.size())));
        case 2 -> out.set(at, out.get(random.nextInt(out.size())));
        case 3 -> out.set(at, WORDS.get(random.nextInt(WORDS.size())));
        default -> Collections.swap(out, at, random.nextInt(out.size()));
      }
    }
    return String.join("", out);
  }
}
