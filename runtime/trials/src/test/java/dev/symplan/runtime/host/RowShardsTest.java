package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.runtime.Session;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Products whose columns are gathered are written where the whole has them, between the columns of
 * other ranks, and only there where nothing else meets them. Others with {@code -Dsymplan.seed=N},
 * more with {@code -Dfuzz=N}.
 */
@Tag("random")
class RowShardsTest {
  private static final long SEED = Fuzz.seed(520);

  /** The ops between the product and its gather, and whether it can then be in rows. */
  private enum Form {
    PLAIN("", true),
    VIEW("v = aten::view(y, [1, M, N])", true),
    VIEW_OF_VIEW("u = aten::view(y, [M, 1, N]); v = aten::view(u, [1, 1, M, N])", true),
    COMPUTED("v = aten::neg(y)", false),
    READ_ELSEWHERE("s = aten::sum(y)", false),
    HALF_ROWS("h = aten::view(y, [H, G]); s = aten::view(h, [M, N])", false);

    final String lines;
    final boolean inRows;

    Form(String lines, boolean inRows) {
      this.lines = lines;
      this.inRows = inRows;
    }
  }

  /** The op that makes the tensor that is gathered. */
  private static final List<String> MAKERS =
      List.of(
          "mm(x, w)",
          "addmm(b, x, w)",
          "addmm(e, x, w, alpha=0.5)",
          "bmm(x3, w3)",
          "mul.Tensor(e, 1.5)",
          "add.Tensor(e, b)",
          "silu(e)");

  private final Set<String> found = ConcurrentHashMap.newKeySet();

  @Test
  void giveTheBitsOfTheReference() {
    Fuzz.each(300, this::check);
    assertThat(found)
        .containsAll(
            List.of("PUSH PLAIN", "PUSH VIEW", "COPY_ENGINE PLAIN", "COPY_ENGINE VIEW_OF_VIEW"))
        .containsAll(MAKERS);
  }

  private void check(int number) {
    long seed = SEED + number;
    var random = new Random(seed);
    int ranks = 2 + random.nextInt(3);
    var dtype = List.of("f32", "bf16", "f64").get(random.nextInt(3));
    int m = 2 + random.nextInt(20);
    int n = 16 * (1 + random.nextInt(5));
    int k = 1 + random.nextInt(30);
    var form = Form.values()[random.nextInt(Form.values().length)];
    var maker = MAKERS.get(random.nextInt(MAKERS.size()));
    if (maker.startsWith("bmm")) {
      form = Form.PLAIN;
    }
    var text = text(ranks, dtype, m, n, k, form, maker, random);
    var variant = List.of(Variant.PUSH, Variant.COPY_ENGINE).get(random.nextInt(2));
    var what = "seed %s%n%s%n%s".formatted(seed, variant, text);
    var parsed = GraphParser.parse(new SourceFile("rows.graph", text));
    var plan =
        Compiler.forTarget(Target.H200_X4)
            .with(CompileOptions.DEFAULT.withVariants(ImmutableMap.of("all_gather", variant)))
            .compile(parsed);
    assertThat(hasRows(plan.forRank(0))).as(what).isEqualTo(form.inRows);
    found.add(variant + " " + form);
    found.add(maker);
    try (var session = Session.open(plan, new HostBackend())) {
      Programs.fillInputs(session, random);
      for (int run = 0; run < 2; run++) {
        Programs.runsAsReference(
            session, Collections.nCopies(ranks, parsed.graphs().getFirst()), plan, what);
      }
    }
  }

  private static String text(
      int ranks, String dtype, int m, int n, int k, Form form, String maker, Random random) {
    var members = IntStream.range(0, ranks).boxed().collect(Collectors.toList());
    Collections.shuffle(members, random);
    boolean views = form.lines.contains("v = ");
    boolean batches = maker.startsWith("bmm");
    int dim = batches || form == Form.VIEW ? 2 : form == Form.VIEW_OF_VIEW ? 3 : 1;
    var ops =
        """
          y = aten::%s
          %s
          r = symplan::all_gather_dim(%s, %s, %s, "g")
          o = _c10d_functional::wait_tensor(r)
          return o%s
        """
            .formatted(
                maker,
                form.lines.replace("; ", "\n  "),
                views ? "v" : "y",
                dim,
                ranks,
                form.lines.contains("s = ") ? ", s" : "");
    var inputs =
        "x: D[M, K], w: D[K, N], b: D[N], e: D[M, N], x3: D[3, M, K], w3: D[3, K, N]"
            .replace("D", dtype)
            .replace("K", "" + k);
    return "graph version 1\ngroup g = %s\n\ngraph rows(%s) {\n%s}\n"
        .formatted(members, inputs, ops)
        .replace("M", "" + m)
        .replace("N", "" + n)
        .replace("H", "" + 2 * m)
        .replace("G", "" + n / 2);
  }

  private static boolean hasRows(RankPlan plan) {
    return plan.graph().values().stream()
        .filter(Value::isTensor)
        .anyMatch(
            value ->
                plan.placement(value).isShard()
                    && plan.placement(value).stride() < value.tensor().bytes());
  }
}
