package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.codegen.Lowering;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.ProductAlgorithms;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.SessionOptions;
import dev.symplan.runtime.host.HostBackend;
import dev.symplan.runtime.profile.Profile.Activity;
import dev.symplan.runtime.tensor.HostTensor;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Products whatever algorithm computes them. */
@Tag("gpu")
class ProductsOnGpuTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(10);
  private static final int RUNS = 10_000;

  /** Long sums of few elements, which several blocks may share, and whole waves of blocks. */
  private static final String TEXT =
      """
      graph version 1
      graph t(a: bf16[64, 8192], b: bf16[8192, 64], c: bf16[200, 1024], d: bf16[1024, 1536], e: bf16[1536], f: f16[3, 72, 4096], g: f16[3, 4096, 40], h: f32[96, 2048], i: f32[2048, 96], j: f64[40, 300], k: f64[300, 24]) {
        l = aten::mm(a, b)
        m = aten::mm(c, d)
        n = aten::addmm(e, c, d)
        o = aten::addmm(m, c, d, beta=0.5, alpha=2)
        p = aten::bmm(f, g)
        q = aten::mm(h, i)
        r = aten::mm(j, k)
        return l, m, n, o, p, q, r
      }
      """;

  @BeforeEach
  void requireGpus() {
    Gpus.require(1);
  }

  private static CudaSession open(Plan plan, ProductAlgorithms algorithms) {
    var session =
        CudaSession.open(
            Lowering.lower(plan),
            SessionOptions.DEFAULT.withTimeout(TIMEOUT).withProducts(algorithms));
    LocalPrograms.fill(session, 3);
    return session;
  }

  @ParameterizedTest
  @EnumSource
  void agreesWithTheHost(ProductAlgorithms algorithms) {
    var plan = LocalPrograms.plan(TEXT);
    try (var gpu = open(plan, algorithms);
        var host = Session.open(plan, new HostBackend())) {
      LocalPrograms.fill(host, 3);
      host.run();
      gpu.run();
      LocalPrograms.compare(plan, gpu, host, TEXT);
    }
  }

  /** Products of 8-bit floats with factors of tensors, and of rows and columns. */
  private static final String SHORT =
      """
      graph version 1
      graph t(a: f32[200, 1024], b: f32[512, 1024], s: f32[200, 1], t: f32[1, 512], u: f32[], c: bf16[512], d: f16[512]) {
        e = aten::_to_copy(a, dtype=torch.float8_e4m3fn)
        f = aten::_to_copy(b, dtype=torch.float8_e4m3fn)
        g = aten::_to_copy(a, dtype=torch.float8_e5m2)
        h = aten::t(f)
        i = aten::_scaled_mm(e, h, u, u, None, None, torch.bfloat16)
        j = aten::_scaled_mm(e, h, u, u, c, None, torch.bfloat16, True)
        k = aten::_scaled_mm(g, h, u, u, d, None, torch.float16)
        l = aten::_scaled_mm(e, h, s, t, None, None, torch.bfloat16, True)
        m = aten::_scaled_mm(e, h, s, t, c, None, torch.bfloat16)
        n = aten::_scaled_mm(e, h, u, u, None, None, torch.float32)
        return i, j, k, l, m, n
      }
      """;

  @ParameterizedTest
  @EnumSource
  void shortFloatsAgreeWithTheHost(ProductAlgorithms algorithms) {
    var plan = LocalPrograms.plan(SHORT);
    try (var gpu = open(plan, algorithms);
        var again = open(plan, algorithms);
        var host = Session.open(plan, new HostBackend())) {
      LocalPrograms.fill(host, 3);
      host.run();
      gpu.run();
      LocalPrograms.compare(plan, gpu, host, SHORT);
      again.run();
      Bits.assertSame(gpu, again, "in two sessions");
      var kernels =
          gpu.profile().activities().stream()
              .filter(activity -> List.of("i", "j", "k").contains(activity.label()))
              .map(Activity::kernel)
              .toList();
      assertThat(kernels).hasSize(3).noneMatch(kernel -> kernel.startsWith("generated"));
      gpu.profile().activities().stream()
          .filter(activity -> activity.label().equals("l"))
          .forEach(activity -> System.out.println("by rows and columns: " + activity.kernel()));
    }
  }

  @Test
  void sessionsOfOneProcessAgreeToTheBit() {
    var plan = LocalPrograms.plan(TEXT);
    try (var one = open(plan, ProductAlgorithms.TIMED);
        var other = open(plan, ProductAlgorithms.TIMED)) {
      one.run();
      other.run();
      Bits.assertSame(one, other, "in two sessions");
    }
  }

  @Test
  void repeatsToTheBit() {
    try (var session = open(LocalPrograms.plan(TEXT), ProductAlgorithms.TIMED)) {
      session.run();
      var first = new ArrayList<HostTensor>();
      for (int i = 0; i < session.outputCount(); i++) {
        var output = session.output(0, i).orElseThrow();
        first.add(output.copyAs(output.type()));
      }
      for (int run = 1; run < RUNS; run++) {
        session.run();
        for (int i = 0; i < first.size(); i++) {
          Bits.assertSame(
              session.output(0, i).orElseThrow(),
              first.get(i),
              "output %s of run %s".formatted(i, run));
        }
      }
    }
  }

  /** Three products of one input share a launch, and so do two with what combines them. */
  private static final String JOINED =
      """
      graph version 1
      graph t(x: bf16[16, 4096], u: bf16[2048, 4096], v: bf16[1024, 4096], w: bf16[7168, 4096], y: bf16[7168, 4096]) {
        a = aten::permute(u, [1, 0])
        b = aten::permute(v, [1, 0])
        c = aten::permute(w, [1, 0])
        d = aten::permute(y, [1, 0])
        q = aten::mm(x, a)
        k = aten::mm(x, b)
        g = aten::mm(x, c)
        h = aten::mm(x, d)
        s = aten::silu(g)
        z = aten::mul.Tensor(s, h)
        return q, k, g, h, z
      }
      """;

  private static final String GATED =
      """
      graph version 1
      graph t(g: bf16[16, 7168], h: bf16[16, 7168]) {
        s = aten::silu(g)
        z = aten::mul.Tensor(s, h)
        return z
      }
      """;

  @Test
  void productsThatShareALaunchHaveTheSameBits() {
    var plan = LocalPrograms.plan(JOINED);
    var names = List.of("q", "k", "g", "h", "z");
    try (var joined = open(plan, ProductAlgorithms.TIMED);
        var gated = open(LocalPrograms.plan(GATED), ProductAlgorithms.TIMED)) {
      joined.run();
      for (int i = 0; i < 4; i++) {
        var alone = JOINED.replaceAll("return .*", "return " + names.get(i));
        try (var one = open(LocalPrograms.plan(alone), ProductAlgorithms.TIMED)) {
          one.run();
          Bits.assertSame(
              joined.output(0, i).orElseThrow(), one.output(0, 0).orElseThrow(), names.get(i));
        }
      }
      for (int i = 0; i < 2; i++) {
        var product = joined.output(0, 2 + i).orElseThrow();
        gated.input(0, i).orElseThrow().memory().copyFrom(product.memory());
      }
      gated.run();
      Bits.assertSame(joined.output(0, 4).orElseThrow(), gated.output(0, 0).orElseThrow(), "z");
      assertThat(joined.profile().activities())
          .extracting(Activity::label)
          .containsExactlyElementsOf(names);
      for (int run = 1; run < RUNS; run++) {
        joined.run();
      }
      Bits.assertSame(
          joined.output(0, 4).orElseThrow(), gated.output(0, 0).orElseThrow(), "z, later");
    }
  }

  /** Measuring takes memory, which must be there again when the session is open. */
  @Test
  void choosingLeavesNoMemoryTaken() {
    var plan = LocalPrograms.plan(TEXT);
    long heuristic = inUse(plan, ProductAlgorithms.HEURISTIC);
    long timed = inUse(plan, ProductAlgorithms.TIMED);
    // Code of kernels that were tried stays.
    assertThat(timed - heuristic).isLessThan(96L << 20);
  }

  private static long inUse(Plan plan, ProductAlgorithms algorithms) {
    try (var session = open(plan, algorithms)) {
      session.run();
      return new CudaBackend().memoryInUse(1).getFirst();
    }
  }
}
