package dev.symplan.runtime.check;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.aten.AttentionOps;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.text.GraphPrinter;
import dev.symplan.planner.pass.rewrite.LowerAttention;
import dev.symplan.planner.pass.rewrite.LowerAttention.Bounds;
import dev.symplan.planner.pass.rewrite.ShareHeads;
import java.util.List;
import java.util.Random;
import java.util.StringJoiner;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Gradients of heads that the graph repeats, against the sums of those of the copies. */
class SharedGradientsTest {
  private static final int PROGRAMS = 200;
  private static final long SEED = 20261127;

  /** Small enough for several blocks, of units or of rows. */
  private static final Bounds SMALL = new Bounds(0, 2048, 3, 200);

  /** A training step of attention, of random sizes and options. */
  private static final class Maker {
    private final Random random;
    private final StringJoiner inputs = new StringJoiner(", ");
    private final StringBuilder body = new StringBuilder();
    private final String dtype;
    private final long batch;
    private final long shared;
    private final long group;
    private final long rows;
    private final long keys;
    private final long features;
    private final long width;

    Maker(long seed) {
      this.random = new Random(seed);
      this.dtype = pick("f32", "f64", "bf16", "f16");
      this.batch = pick(1L, 1L, 2L);
      this.shared = pick(1L, 2L, 3L);
      this.group = pick(2L, 3L, 4L);
      this.rows = pick(1L, 5L, 8L, 13L);
      this.keys = pick(1L, 7L, 8L, 16L);
      this.features = pick(3L, 8L, 16L);
      this.width = pick(features, features, 5L, 8L);
    }

    @SafeVarargs
    private <T> T pick(T... choices) {
      return choices[random.nextInt(choices.length)];
    }

    private void op(String format, Object... args) {
      body.append("  ").append(format.formatted(args)).append('\n');
    }

    private void input(String name, String type, long... sizes) {
      inputs.add("%s: %s%s".formatted(name, type, list(sizes)));
    }

    private static String list(long... sizes) {
      var text = new StringJoiner(", ", "[", "]");
      for (long size : sizes) {
        text.add(Long.toString(size));
      }
      return text.toString();
    }

    private long heads() {
      return shared * group;
    }

    /** Repeats heads, by copies or, where there is one, without. */
    private boolean repeat(String name, long columns) {
      boolean inside = random.nextBoolean();
      if (inside) {
        input(name + "0", dtype, batch, keys, shared, columns);
        op("%1$s1 = aten::permute(%1$s0, [0, 2, 1, 3])", name);
      } else {
        input(name + "0", dtype, batch, shared, keys, columns);
        op("%1$s1 = aten::mul.Scalar(%1$s0, 0.5)", name);
      }
      if (shared == 1 && random.nextBoolean()) {
        op("%1$s = aten::expand(%1$s1, %2$s)", name, list(batch, group, keys, columns));
        return false;
      }
      op("%1$su = aten::unsqueeze(%1$s1, %2$s)", name, pick(2, -3));
      op("%1$se = aten::expand(%1$su, %2$s)", name, list(batch, shared, group, keys, columns));
      var whole = list(batch, heads(), keys, columns);
      if (random.nextBoolean()) {
        op("%1$s = aten::reshape(%1$se, %2$s)", name, whole);
      } else {
        op("%1$sc = aten::clone(%1$se, memory_format=torch.contiguous_format)", name);
        op("%1$s = aten::%2$s(%1$sc, %3$s)", name, pick("view", "_unsafe_view"), whole);
      }
      return true;
    }

    /** Adds the gradients of the copies up. */
    private void sum(String name, boolean groups, long columns) {
      boolean kept = random.nextBoolean();
      if (groups) {
        var split = list(batch, shared, group, keys, columns);
        op("v%1$s = aten::%2$s(d%1$s, %3$s)", name, pick("view", "reshape"), split);
      }
      op(
          "s%s = aten::sum.dim_IntList(%s, [%s], %s)",
          name,
          (groups ? "v" : "d") + name,
          groups ? pick(2, -3) : pick(1, -3),
          kept ? "True" : "False");
      op(
          kept && groups
              ? "r%1$s = aten::squeeze.dim(s%1$s, 2)"
              : "r%1$s = aten::mul.Scalar(s%1$s, 2.0)",
          name);
    }

    String text() {
      var op = pick("cudnn", "efficient", "flash", "flash_for_cpu");
      boolean wide = op.equals("cudnn") || op.equals("efficient");
      long columns = wide ? width : features;
      input("q", dtype, batch, heads(), rows, features);
      input("g", dtype, batch, heads(), rows, columns);
      boolean ofKey = repeat("k", features);
      boolean ofValue = repeat("v", columns);
      boolean causal = random.nextBoolean();
      var mask = op.equals("flash") || random.nextBoolean() ? "None" : "m";
      if (mask.equals("m")) {
        input("m", pick(dtype, "f32"), pick(1L, batch), pick(1L, heads()), rows, keys);
      }
      attention(op, mask, causal ? "True" : "False", pick("", ", scale=0.3", ", scale=-0.7"));
      sum("k", ofKey, features);
      sum("v", ofValue, columns);
      return "graph version 1\ngraph t(%s) {\n%s  return o, dq, rk, rv\n}\n"
          .formatted(inputs, body);
    }

    private void attention(String op, String mask, String causal, String scale) {
      var name = "aten::_scaled_dot_product_%s_attention".formatted(op);
      switch (op) {
        case "cudnn" -> {
          op(
              "o, l, _, _, _, _, x, y, _ = %s(q, k, v, %s, True, 0.0, %s%s)",
              name, mask, causal, scale);
          op(
              "dq, dk, dv = %s_backward(g, q, k, v, o, l, x, y, %s, None, None, %s, %s, 0.0, %s%s)",
              name, mask, rows, keys, causal, scale);
        }
        case "efficient" -> {
          op("o, l, x, y = %s(q, k, v, %s, True, 0.0, %s%s)", name, mask, causal, scale);
          op(
              "dq, dk, dv, _ = %s_backward(g, q, k, v, %s, o, l, x, y, 0.0, [True, True, True,"
                  + " False], %s%s)",
              name, mask, causal, scale);
        }
        case "flash" -> {
          input("c", "i32", batch + 1);
          op("o, l, _, _, _, _, x, y, _ = %s(q, k, v, 0.0, %s%s)", name, causal, scale);
          op(
              "dq, dk, dv = %s_backward(g, q, k, v, o, l, c, c, %s, %s, 0.0, %s, x, y%s)",
              name, rows, keys, causal, scale);
        }
        default -> {
          var cpu = "aten::_scaled_dot_product_flash_attention_for_cpu";
          op("o, l = %s(q, k, v, 0.0, %s, attn_mask=%s%s)", cpu, causal, mask, scale);
          op(
              "dq, dk, dv = %s_backward(g, q, k, v, o, l, 0.0, %s, attn_mask=%s%s)",
              cpu, causal, mask, scale);
        }
      }
    }
  }

  private static List<Long> headsOfKeys(Graph graph) {
    return graph.ops().stream()
        .filter(op -> AttentionOps.is(op.def()))
        .map(op -> op.call().tensor("key").size(1))
        .toList();
  }

  private static void compare(Graph expected, Graph actual, String text) {
    var wanted = LoweredAttentionTest.evaluate(expected);
    var got = LoweredAttentionTest.evaluate(actual);
    var dtype = expected.inputs().getFirst().tensor().dtype();
    for (int i = 0; i < wanted.size(); i++) {
      LoweredAttentionTest.compare(
          wanted.get(i).orElseThrow(),
          got.get(i).orElseThrow(),
          LoweredAttentionTest.tolerance(dtype),
          text + GraphPrinter.print(actual));
    }
  }

  @Test
  void areTheSumsOfThoseOfTheCopies() {
    for (long seed = SEED; seed < SEED + PROGRAMS; seed++) {
      var maker = new Maker(seed);
      var text = "seed " + seed + "\n" + maker.text();
      var graph = LoweredAttentionTest.parse(text.substring(text.indexOf('\n') + 1));
      var made = ShareHeads.share(graph);
      assertThat(headsOfKeys(made)).as(text).containsExactly(maker.shared, maker.shared);
      assertThat(made.ops())
          .as(GraphPrinter.print(made))
          .noneMatch(op -> op.def().name().name().equals("sum"));
      compare(graph, made, text);
      compare(graph, LowerAttention.lower(made, SMALL), text);
    }
  }

  /** What the graph does with the gradients of copies, and what it did with the copies before. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          the sum read twice       | 3, 3   |  | s = aten::sum.dim_IntList(w, [2], True); r = aten::add.Tensor(s, s)
          no dimension kept        | 3, 3   |  | r = aten::sum.dim_IntList(w, [2])
          the sum written          | 3, 3   |  | s = aten::sum.dim_IntList(w, [2]); r = aten::mul_.Scalar(s, 2.0)
          the same type            | 3, 3   |  | r = aten::sum.dim_IntList(w, [2], False, dtype=torch.bfloat16)
          a copy of the gradient   | 3, 3   |  | c = aten::clone(w); r = aten::sum.dim_IntList(c, [2], True)
          another type             | 3, 12  |  | r = aten::sum.dim_IntList(w, [2], False, dtype=torch.float32)
          another dimension        | 3, 12  |  | r = aten::sum.dim_IntList(w, [1], True)
          batches, too             | 3, 12  |  | r = aten::sum.dim_IntList(w, [0, 2], True)
          all                      | 3, 12  |  | r = aten::sum.dim_IntList(w, None, True)
          other groups             | 3, 12  |  | n = aten::view(dk, [2, 6, 2, 7, 8]); r = aten::sum.dim_IntList(n, [2], True)
          the order of heads       | 3, 12  |  | n = aten::view(dk, [2, 4, 3, 7, 8]); r = aten::sum.dim_IntList(n, [1], True)
          rows instead of heads    | 3, 12  |  | n = aten::reshape(dk, [2, 3, 7, 4, 8]); r = aten::sum.dim_IntList(n, [3], True)
          a product                | 3, 12  |  | n = aten::mul.Scalar(w, 2.0); r = aten::sum.dim_IntList(n, [2], True)
          a largest                | 3, 12  |  | r = aten::amax(w, [2], True)
          the gradient read as well| 3, 12  |  | s = aten::sum.dim_IntList(w, [2], True); r = aten::add.Tensor(s, w)
          the gradient read before | 3, 12  |  | n = aten::mul.Scalar(w, 2.0); s = aten::sum.dim_IntList(w, [2], True); r = aten::add.Tensor(s, n)
          the gradient written     | 3, 12  |  | r = aten::sum.dim_IntList(w, [2], True); x = aten::mul_.Scalar(dk, 2.0)
          the gradient given       | 3, 12  |  | r = aten::sum.dim_IntList(w, [2], True); return o, dq, sv, r, dk
          a view of it given       | 3, 12  |  | r = aten::sum.dim_IntList(w, [2], True); return o, dq, sv, r, w
          the copy read as well    | 3, 3   |  | s = aten::sum.dim_IntList(w, [2]); n = aten::slice.Tensor(k, 1, 0, 3); r = aten::add.Tensor(s, n)
          anything written since   | 3, 12  | x = aten::add_.Scalar(z, 1.0) | r = aten::sum.dim_IntList(w, [2])
          the heads written since  | 3, 12  | x = aten::mul_.Scalar(a, 2.0) | r = aten::sum.dim_IntList(w, [2], True)
          """)
  void onlyWhereTheyAreAddedUp(String name, String shared, String between, String sum) {
    var text =
        """
        graph version 1
        graph t(q: bf16[2, 12, 5, 8], h: bf16[2, 3, 7, 8], g: bf16[2, 12, 5, 8], b: bf16[2, 12, 7, 8]) {
          a = aten::clone(h)
          z = aten::clone(b)
          u = aten::unsqueeze(a, 2)
          e = aten::expand(u, [2, 3, 4, 7, 8])
          k = aten::reshape(e, [2, 12, 7, 8])
          o, l, x0, y0 = aten::_scaled_dot_product_efficient_attention(q, k, k, None, True)
        %s  dq, dk, dv, n0 = aten::_scaled_dot_product_efficient_attention_backward(g, q, k, k, None, o, l, x0, y0, 0.0, [True, True, True, False])
          w = aten::view(dk, [2, 3, 4, 7, 8])
          wv = aten::view(dv, [2, 3, 4, 7, 8])
          sv = aten::sum.dim_IntList(wv, [2], True)
        %s}
        """
            .formatted(
                between == null ? "" : between.indent(2),
                (sum.contains("return") ? sum : sum + "; return o, dq, sv, r")
                    .replace("; ", "\n")
                    .indent(2));
    var graph = LoweredAttentionTest.parse(text);
    var made = ShareHeads.share(graph);
    assertThat(headsOfKeys(made).toString()).as(name).isEqualTo("[" + shared + "]");
    compare(graph, made, name);
  }

  /** A gradient that nothing reads is of no head. */
  @ParameterizedTest
  @ValueSource(strings = {"dk", "dv"})
  void ofKeysOrValuesAlone(String gradient) {
    for (var other : List.of(gradient.equals("dk") ? "dv" : "dk", "_")) {
      var results = gradient.equals("dk") ? "dk, " + other : other + ", dv";
      var text =
          """
          graph version 1
          graph t(q: bf16[2, 12, 5, 8], h: bf16[2, 3, 7, 8], g: bf16[2, 12, 5, 8]) {
            u = aten::unsqueeze(h, 2)
            e = aten::expand(u, [2, 3, 4, 7, 8])
            k = aten::reshape(e, [2, 12, 7, 8])
            o, l, x, y = aten::_scaled_dot_product_efficient_attention(q, k, k, None, True)
            dq, %s, n0 = aten::_scaled_dot_product_efficient_attention_backward(g, q, k, k, None, o, l, x, y, 0.0, [True, True, True, False])
            w = aten::view(%s, [2, 3, 4, 7, 8])
            s = aten::sum.dim_IntList(w, [2], True)
            return o, dq, s
          }
          """
              .formatted(results, gradient);
      var graph = LoweredAttentionTest.parse(text);
      var changed = ShareHeads.share(graph);
      assertThat(headsOfKeys(changed)).as(text).containsExactly(3L, 3L);
      compare(graph, changed, text);
      compare(graph, LowerAttention.lower(changed, SMALL), text);
    }
  }

  /** The caller may change what it gives and gets before the graph of the gradients begins. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          made by the first graph    | 3  | k0 = aten::mul.Scalar(h, 2.0) | o
          a view of what it makes    | 3  | k1 = aten::mul.Scalar(i, 2.0); k0 = aten::permute(k1, [0, 2, 1, 3]) | o
          an input                   | 12 | k0 = aten::alias(h)           | o
          a view of an input         | 12 | k0 = aten::permute(i, [0, 2, 1, 3]) | o
          an output                  | 12 | k0 = aten::mul.Scalar(h, 2.0) | k0
          a part of an output        | 12 | k1 = aten::mul.Scalar(i, 2.0); k0 = aten::permute(k1, [0, 2, 1, 3]) | k1
          more than the copies       | 12 | k1 = aten::mul.Scalar(j, 2.0); k0 = aten::slice.Tensor(k1, 1, 0, 3) | o
          """)
  void onlyOfWhatTheCallerLeavesAsItIs(String name, long shared, String made, String output) {
    var text =
        """
        graph version 1
        graph t(q: bf16[2, 12, 5, 8], h: bf16[2, 3, 7, 8], i: bf16[2, 7, 3, 8], j: bf16[2, 30, 7, 8], g: bf16[2, 12, 5, 8]) {
        %s  u = aten::unsqueeze(k0, 2)
          e = aten::expand(u, [2, 3, 4, 7, 8])
          k = aten::reshape(e, [2, 12, 7, 8])
          o, l, x, y = aten::_scaled_dot_product_efficient_attention(q, k, k, None, True)
          symplan::border("backward", 4, 1)
          dq, dk, dv, n0 = aten::_scaled_dot_product_efficient_attention_backward(g, q, k, k, None, o, l, x, y, 0.0, [True, True, True, False])
          wk = aten::view(dk, [2, 3, 4, 7, 8])
          sk = aten::sum.dim_IntList(wk, [2], True)
          wv = aten::view(dv, [2, 3, 4, 7, 8])
          sv = aten::sum.dim_IntList(wv, [2], True)
          return %s, dq, sk, sv
        }
        """
            .formatted(made.replace("; ", "\n").indent(2), output);
    var graph = LoweredAttentionTest.parse(text);
    var changed = ShareHeads.share(graph);
    assertThat(headsOfKeys(changed)).as(name).containsExactly(3L, shared);
    compare(graph, changed, name);
  }
}
