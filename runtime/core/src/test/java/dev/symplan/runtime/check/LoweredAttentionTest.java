package dev.symplan.runtime.check;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.DType;
import dev.symplan.ir.aten.AttentionOps;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.ir.text.GraphPrinter;
import dev.symplan.planner.pass.rewrite.LowerAttention;
import dev.symplan.planner.pass.rewrite.LowerAttention.Bounds;
import dev.symplan.planner.pass.rewrite.ShareHeads;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.SeededInputs;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.StringJoiner;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Rewritten attention computes the same as the op. */
class LoweredAttentionTest {
  private static final int PROGRAMS = 300;
  private static final long SEED = 20261123;

  /** Small enough for several blocks, of units or of rows. */
  private static final Bounds SMALL = new Bounds(0, 2048, 3, 200);

  /** One program, of random sizes and options. */
  private static final class Maker {
    private final Random random;
    private final StringJoiner inputs = new StringJoiner(", ");
    private final String dtype;

    Maker(long seed) {
      this.random = new Random(seed);
      this.dtype = pick("f32", "f32", "f64", "bf16", "f16");
    }

    @SafeVarargs
    private <T> T pick(T... choices) {
      return choices[random.nextInt(choices.length)];
    }

    private void input(String name, String type, long... sizes) {
      var text = new StringJoiner(", ", "[", "]");
      for (long size : sizes) {
        text.add(Long.toString(size));
      }
      inputs.add(name + ": " + type + text);
    }

    String text() {
      long batch = pick(1, 1, 2, 3);
      long shared = pick(1, 2, 3);
      long rows = pick(1, 5, 8, 13, 16);
      long keys = pick(1, 7, 8, 16, 24);
      // Of up to 256 in f32, our own kernel computes the forward op.
      long features = pick(3, 8, 16, 257, 257, 264);
      boolean backward = random.nextInt(3) == 0;
      long group = pick(1, 1, 2, 4);
      boolean cpu = backward && random.nextBoolean();
      long width = cpu ? features : pick(features, 8L, 5L);
      input("q", dtype, batch, shared * group, rows, features);
      input("k", dtype, batch, shared, keys, features);
      input("v", dtype, batch, shared, keys, width);
      boolean causal = random.nextBoolean();
      var mask = mask(batch, shared * group, rows, keys, causal);
      var scale = pick("", ", scale=0.3", ", scale=-0.7");
      if (!backward) {
        return program(
            "  o = aten::scaled_dot_product_attention(q, k, v, %s, 0.0, %s, enable_gqa=True%s)\n"
                .formatted(mask, flag(causal), scale),
            "o");
      }
      input("g", dtype, batch, shared * group, rows, width);
      if (cpu) {
        return program(
            """
              o, l = aten::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, %2$s, attn_mask=%1$s%3$s)
              dq, dk, dv = aten::_scaled_dot_product_flash_attention_for_cpu_backward(g, q, k, v, o, l, 0.0, %2$s, attn_mask=%1$s%3$s)
            """
                .formatted(mask, flag(causal), scale),
            "o, l, dq, dk, dv");
      }
      return program(
          """
            o, l, s, t = aten::_scaled_dot_product_efficient_attention(q, k, v, %1$s, True, 0.0, %2$s%3$s)
            dq, dk, dv, db = aten::_scaled_dot_product_efficient_attention_backward(g, q, k, v, %1$s, o, l, s, t, 0.0, [True, True, True, False], %2$s%3$s)
          """
              .formatted(mask, flag(causal), scale),
          "o, l, dq, dk, dv");
    }

    private String mask(long batch, long heads, long rows, long keys, boolean causal) {
      int kind = random.nextInt(4);
      if (kind == 0) {
        return "None";
      }
      input(
          "m",
          kind == 1 ? "b8" : pick(dtype, "f32"),
          pick(1L, batch),
          pick(1L, heads),
          pick(1L, rows),
          causal ? keys : pick(1L, keys));
      return "m";
    }

    private static String flag(boolean value) {
      return value ? "True" : "False";
    }

    private String program(String body, String outputs) {
      return "graph version 1\ngraph t(%s) {\n%s  return %s\n}\n".formatted(inputs, body, outputs);
    }
  }

  static Graph parse(String text) {
    return GraphParser.parse(new SourceFile("t.graph", text)).graphs().getFirst();
  }

  static List<Optional<HostTensor>> evaluate(Graph graph) {
    var inputs =
        graph.inputs().stream()
            .map(
                input -> {
                  var tensor = HostTensor.allocate(input.tensor());
                  SeededInputs.fill(tensor, SEED, 0, input.name());
                  return Optional.of(tensor);
                })
            .toList();
    return Reference.evaluate(List.of(graph), List.of(), (_, index) -> inputs.get(index))
        .outputs()
        .getFirst();
  }

  static double tolerance(DType dtype) {
    return switch (dtype) {
      case F64 -> 1e-12;
      case F32 -> 2e-5;
      case F16 -> 4e-3;
      case BF16 -> 3e-2;
      default -> throw new IllegalArgumentException(dtype.shortName());
    };
  }

  static void compare(HostTensor expected, HostTensor actual, double tolerance, String text) {
    assertThat(actual.type()).as(text).isEqualTo(expected.type());
    var plain = expected.contiguous();
    var other = actual.contiguous();
    var flat = plain.type().sizes().stream().reduce(1, (a, b) -> a * b);
    for (long i = 0; i < flat; i++) {
      var index = new long[plain.type().rank()];
      long rest = i;
      for (int dim = index.length - 1; dim >= 0; dim--) {
        index[dim] = rest % plain.type().size(dim);
        rest /= plain.type().size(dim);
      }
      double wanted = plain.get(index);
      double got = other.get(index);
      if (Double.isInfinite(wanted) || Double.isNaN(wanted)) {
        assertThat(got).as(text).isEqualTo(wanted);
      } else {
        assertThat(Math.abs(got - wanted))
            .as("%s instead of %s in%n%s", got, wanted, text)
            .isLessThanOrEqualTo(tolerance * (1 + Math.abs(wanted)));
      }
    }
  }

  @Test
  void isWhatTheOpGives() {
    int lowered = 0;
    for (long seed = SEED; seed < SEED + PROGRAMS; seed++) {
      var text = new Maker(seed).text();
      var graph = parse(text);
      var made = LowerAttention.lower(graph, SMALL);
      if (made.ops().stream().noneMatch(op -> AttentionOps.is(op.def()))) {
        lowered++;
      }
      var expected = evaluate(graph);
      var actual = evaluate(made);
      var dtype = graph.inputs().getFirst().tensor().dtype();
      for (int i = 0; i < expected.size(); i++) {
        compare(
            expected.get(i).orElseThrow(),
            actual.get(i).orElseThrow(),
            tolerance(dtype),
            "seed " + seed + "\n" + text + GraphPrinter.print(made));
      }
    }
    assertThat(lowered).as("programs without attention").isGreaterThan(PROGRAMS / 2);
  }

  /** Gradients of many scores, in pieces of batches, of heads, or of those that share one. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          1 | 4 | 4 | 1000 | 2 | 0, 1, 2, 3 | 1, 1, 16, 24 | true
          1 | 5 | 5 | 800  | 3 | 0, 1, 2, 3 | 1, 5, 16, 24 | true
          3 | 4 | 4 | 3100 | 2 | 0, 1, 2, 3 | 3, 1, 16, 24 | true
          3 | 4 | 4 | 800  | 6 | 0, 1, 2, 3 | 1, 4, 16, 24 | true
          2 | 4 | 4 | 500  | 8 | 0, 2, 1, 3 | 16, 24       | true
          2 | 4 | 4 | 1600 | 2 | 0, 2, 1, 3 | none         | true
          2 | 4 | 4 | 300  | 0 | 0, 1, 2, 3 | none         | false
          2 | 4 | 2 | 1600 | 2 | 0, 1, 2, 3 | none         | true
          2 | 4 | 2 | 800  | 4 | 0, 2, 1, 3 | 1, 4, 16, 24 | true
          2 | 4 | 2 | 500  | 8 | 0, 1, 2, 3 | 2, 4, 16, 24 | false
          1 | 6 | 2 | 800  | 4 | 0, 2, 1, 3 | 1, 6, 16, 24 | false
          2 | 7 | 1 | 1200 | 6 | 0, 1, 2, 3 | 2, 1, 16, 24 | false
          2 | 4 | 2 | 300  | 0 | 0, 1, 2, 3 | none         | false
          """)
  void dividesGradients(
      int batch,
      int heads,
      int shared,
      long most,
      int pieces,
      String order,
      String sizesOfBias,
      boolean exact) {
    var dense = order.equals("0, 1, 2, 3");
    var queries = (dense ? "%s, %s, 16, 8" : "%1$s, 16, %2$s, 8").formatted(batch, heads);
    var keys = (dense ? "%s, %s, 24, 8" : "%1$s, 24, %2$s, 8").formatted(batch, shared);
    boolean biased = !sizesOfBias.equals("none");
    var text =
        """
        graph version 1
        graph t(q0: bf16[%1$s], k0: bf16[%2$s], v0: bf16[%2$s], g0: bf16[%1$s]%3$s) {
          q = aten::permute(q0, [%4$s])
          k = aten::permute(k0, [%4$s])
          v = aten::permute(v0, [%4$s])
          g = aten::permute(g0, [%4$s])
          o, l, cq, ck, mq, mk, s, t, d = aten::_scaled_dot_product_cudnn_attention(q, k, v, %5$s, True)
          dq, dk, dv = aten::_scaled_dot_product_cudnn_attention_backward(g, q, k, v, o, l, s, t, %5$s, None, None, 16, 24, 0.0, False)
          return dq, dk, dv
        }
        """
            .formatted(
                queries,
                keys,
                biased ? ", b: bf16[%s]".formatted(sizesOfBias) : "",
                order,
                biased ? "b" : "None");
    var graph = parse(text);
    var made = LowerAttention.lower(graph, new Bounds(0, 1 << 20, 3, most));
    assertThat(made.ops())
        .as(GraphPrinter.print(made))
        .filteredOn(op -> AttentionOps.isBackward(op.def()))
        .hasSize(pieces);
    var expected = evaluate(graph);
    var actual = evaluate(made);
    for (int i = 0; i < expected.size(); i++) {
      compare(
          expected.get(i).orElseThrow(),
          actual.get(i).orElseThrow(),
          exact ? 0 : tolerance(DType.BF16),
          text + GraphPrinter.print(made));
    }
  }

  /** Heads of keys that the graph repeats, with and without copies. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          clone and view | true  | e = aten::expand(u, [2, 3, 4, 7, 8]); c = aten::clone(e, memory_format=torch.contiguous_format); k = aten::view(c, [2, 12, 7, 8])
          a reshape      | true  | e = aten::expand(u, [2, 3, 4, 7, 8]); k = aten::reshape(e, [2, 12, 7, 8])
          another order  | false | e = aten::expand(w, [2, 4, 3, 7, 8]); k = aten::reshape(e, [2, 12, 7, 8])
          written before | true  | x = aten::mul_.Scalar(u, 2.0); e = aten::expand(u, [2, 3, 4, 7, 8]); k = aten::reshape(e, [2, 12, 7, 8])
          written since  | false | e = aten::expand(u, [2, 3, 4, 7, 8]); k = aten::reshape(e, [2, 12, 7, 8]); x = aten::mul_.Scalar(u, 2.0)
          """)
  void sharesHeads(String name, boolean shares, String body) {
    var text =
        """
        graph version 1
        graph t(q: f32[2, 12, 5, 8], h: f32[2, 3, 7, 8]) {
          a = aten::clone(h)
          u = aten::unsqueeze(a, 2)
          w = aten::unsqueeze(a, 1)
        %s  o = aten::scaled_dot_product_attention(q, k, k)
          return o
        }
        """
            .formatted(body.replace("; ", "\n").indent(2));
    var graph = parse(text);
    var made = ShareHeads.share(graph);
    var keys =
        made.ops().stream()
            .filter(op -> AttentionOps.is(op.def()))
            .map(op -> op.call().tensor("key").size(1))
            .toList();
    assertThat(keys).as(name).containsExactly(shares ? 3L : 12L);
    var expected = evaluate(graph).getFirst().orElseThrow();
    compare(expected, evaluate(made).getFirst().orElseThrow(), 0, name);
  }
}
