package dev.symplan.planner.verify;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.TargetFile;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.verify.Violation.Rule;
import java.util.List;

/** Small programs, their plans, and what the verifier says of them. */
final class VerifierFixtures {
  private static final String HEAD =
      """
      graph version 1

      group tp = [0, 1, 2, 3]
      group pairs = [0, 1], [2, 3]

      """;

  /** Without workspaces, so that collectives meet their peers at barriers. */
  private static final Target TARGET =
      TargetFile.read(
          new SourceFile(
              "target.json",
              """
              {"format": "symplan-target", "version": 1, "name": "h200x4", "base": "h200x4",
               "workspace_bytes": 0}
              """));

  /** a and d symm+0x4000, b, c and r symm+0x0, only d symmetric; one_shot all_reduce. */
  static final String CHAIN =
      """
      graph chain(x: f32[64, 64], w: f32[64, 64]) {
        a = aten::relu(x)
        b = aten::mm(a, w)
        c = aten::exp(b)
        v = aten::slice.Tensor(c, 0, 32, 64)
        d = aten::mm(v, w)
        r = _c10d_functional::all_reduce(d, "sum", "tp")
        o = _c10d_functional::wait_tensor(r)
        return o
      }
      """;

  /** a is kept while b and c are made. */
  static final String BESIDE =
      """
      graph g(x: f32[64, 64], w: f32[64, 64]) {
        a = aten::relu(x)
        b = aten::mm(w, w)
        c = aten::mm(b, w)
        d = aten::mm(a, c)
        return d
      }
      """;

  /** r is computed in place of p by two_shot, from step 1 to step 5, beside a, b and c. */
  static final String ASYNC =
      """
      graph async(x: f32[1024, 1024], w: f32[1024, 1024]) {
        p = aten::relu(x)
        r = _c10d_functional::all_reduce(p, "sum", "tp")
        a = aten::mm(w, w)
        b = aten::mm(a, w)
        c = aten::mm(b, w)
        o = _c10d_functional::wait_tensor(r)
        d = aten::mm(c, o)
        g = _c10d_functional::all_gather_into_tensor(d, 4, "tp")
        h = _c10d_functional::wait_tensor(g)
        return h
      }
      """;

  /** Two collectives of each rank, with local work that differs. */
  static final String RANKS =
      """
      graph ranks(x: f32[64, 64]) ranks [0, 2] {
        a = aten::relu(x)
        r = _c10d_functional::all_reduce(a, "sum", "tp")
        q = _c10d_functional::all_reduce(r, "sum", "pairs")
        return q
      }

      graph ranks(x: f32[64, 64]) ranks [1, 3] {
        a = aten::relu(x)
        b = aten::exp(a)
        r = _c10d_functional::all_reduce(b, "sum", "tp")
        q = _c10d_functional::all_reduce(r, "sum", "pairs")
        return q
      }
      """;

  /** The plan of a graph whose collectives are left as they are written. */
  static Plan compile(String text) {
    return compile(text, CompileOptions.DEFAULT.withRewrites(RewriteOptions.OFF));
  }

  /** Collectives as they are written: tests find them by their names and order. */
  static Plan compile(String text, CompileOptions options) {
    return compile(text, options, RewriteOptions.OFF);
  }

  /** The plan of a graph whose collectives read rows that are apart, however short they are. */
  static Plan compileReadingRows(String text, CompileOptions options) {
    return compile(text, options, RewriteOptions.OFF.withLayouts(Mode.ON));
  }

  private static Plan compile(String text, CompileOptions options, RewriteOptions rewrites) {
    var program = GraphParser.parse(new SourceFile("test.graph", HEAD + text));
    return Compiler.forTarget(TARGET).with(options.withRewrites(rewrites)).compile(program);
  }

  /** The plan of a graph that goes through workspaces where that is fastest. */
  static Plan compileWithWorkspaces(String text) {
    return compileWithWorkspaces(text, CompileOptions.DEFAULT);
  }

  static Plan compileWithWorkspaces(String text, CompileOptions options) {
    var program = GraphParser.parse(new SourceFile("test.graph", HEAD + text));
    return Compiler.forTarget(Target.H200_X4)
        .with(options.withRewrites(RewriteOptions.OFF))
        .compile(program);
  }

  static CompileOptions variants(String selector, Variant variant) {
    return CompileOptions.DEFAULT
        .withRewrites(RewriteOptions.OFF)
        .withVariants(ImmutableMap.of(selector, variant));
  }

  static List<Rule> rules(Plan plan) {
    return PlanVerifier.verify(plan).stream().map(Violation::rule).distinct().toList();
  }

  static Violation first(Plan plan, Rule rule) {
    return PlanVerifier.verify(plan).stream()
        .filter(v -> v.rule() == rule)
        .findFirst()
        .orElseThrow(() -> new AssertionError("no " + rule + ": " + PlanVerifier.verify(plan)));
  }

  private VerifierFixtures() {}
}
