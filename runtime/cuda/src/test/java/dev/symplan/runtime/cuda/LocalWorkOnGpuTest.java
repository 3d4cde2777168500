package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.google.common.collect.ImmutableMap;
import dev.symplan.codegen.Lowering;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Case;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.check.OutputCheck;
import dev.symplan.runtime.host.HostBackend;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.SeededInputs;
import java.nio.file.Files;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Each rank's own work, and whole cases, against the host backend and PyTorch. */
@Tag("gpu")
class LocalWorkOnGpuTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(10);
  private static final long SEED = Fuzz.seed(7_000);
  private static final int PROGRAMS = 40;
  private static final int RUNS = 10_000;

  /** Between two looks at all outputs; each run ends in the one that sums up the others. */
  private static final int LOOKS = 100;

  @BeforeEach
  void requireGpus() {
    Gpus.require(1);
  }

  static Stream<Arguments> programs() {
    return Stream.of(
        Arguments.of("reductions", LocalPrograms.reductions()),
        Arguments.of("parts of rows", LocalPrograms.partsOfRows()),
        Arguments.of("long tensors", LocalPrograms.longTensors()),
        Arguments.of("elements", LocalPrograms.elements()),
        Arguments.of("functions of CUDA", LocalPrograms.functionsOfCuda()),
        Arguments.of("places", LocalPrograms.places()),
        Arguments.of("sorts", PlacePrograms.sorts()),
        Arguments.of("choices", PlacePrograms.choices()),
        Arguments.of("windows", PlacePrograms.windows()),
        Arguments.of("scattered", PlacePrograms.scattered()),
        Arguments.of("shapes of products", PlacePrograms.shapes()),
        Arguments.of("moves", LocalPrograms.moves()),
        Arguments.of("comparisons", LocalPrograms.comparisons()),
        Arguments.of("rounded in place", LocalPrograms.rounded()),
        Arguments.of("edges", LocalPrograms.edges()),
        Arguments.of("floats of 8 bits", LocalPrograms.shortFloats()),
        Arguments.of("products", LocalPrograms.products()),
        Arguments.of("grouped products", LocalPrograms.groupedProducts()),
        Arguments.of("joined products", LocalPrograms.joinedProducts()),
        Arguments.of("paired products", LocalPrograms.pairedProducts()),
        Arguments.of("products of few tokens", LocalPrograms.fewTokens()),
        Arguments.of("products of tokens", LocalPrograms.tokenProducts()),
        Arguments.of("attention", LocalPrograms.attention()),
        Arguments.of("composites", LocalPrograms.composites()),
        Arguments.of("complex numbers", LocalPrograms.complexNumbers()),
        Arguments.of("made-up rows", LocalPrograms.madeUpRows(SEED, PROGRAMS)),
        Arguments.of("made-up pieces", LocalPrograms.madeUpPieces(SEED, PROGRAMS)),
        Arguments.of("made-up pairs", LocalPrograms.madeUpPairs(SEED, PROGRAMS)),
        Arguments.of("made-up turned", LocalPrograms.madeUpTurned(SEED, PROGRAMS)));
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("programs")
  void agreesWithTheHost(String name, List<String> texts) {
    for (int i = 0; i < texts.size(); i++) {
      var plan = LocalPrograms.plan(texts.get(i));
      try (var gpu = CudaSession.open(Lowering.lower(plan), TIMEOUT);
          var host = Session.open(plan, new HostBackend())) {
        LocalPrograms.fill(gpu, i);
        LocalPrograms.fill(host, i);
        host.run();
        for (int run = 0; run < 2; run++) {
          gpu.run();
          LocalPrograms.compare(plan, gpu, host, name + "\n" + texts.get(i));
        }
      }
    }
  }

  @Test
  void runsAGraphManyTimesWithoutTheHost() {
    var plan =
        LocalPrograms.plan(
            """
            graph version 1
            graph count(total: f32[64], step: f32[64], kept: f32[64]) {
              sum = aten::add.Tensor(total, step)
              next = aten::copy_(total, sum)
              copy = aten::copy_(kept, sum)
              last = aten::neg(sum)
              return last
            }
            """);
    try (var session = CudaSession.open(Lowering.lower(plan), TIMEOUT)) {
      session.input(0, "total").memory().fill((byte) 0);
      for (int i = 0; i < 64; i++) {
        session.input(0, "step").set(i, i);
      }
      session.run("count", RUNS);
      session.run("count", 1);
      assertThat(session.output(0, 0).orElseThrow().get(63)).isEqualTo(-63.0 * (RUNS + 1));
      assertThat(session.input(0, "total").get(1)).isEqualTo(RUNS + 1.0);
      // The host had no copy of it before.
      assertThat(session.input(0, "kept").get(1)).isEqualTo(RUNS + 1.0);
    }
  }

  @ParameterizedTest
  @MethodSource("dev.symplan.runtime.cuda.EmulatedCasesTest#cases")
  void givesWhatPyTorchGave(String name) {
    var folder = EmulatedCasesTest.folder(name);
    assumeTrue(Files.exists(folder), "the case is not here");
    Gpus.require(4);
    var plan = EmulatedCasesTest.plan(folder);
    try (var session = CudaSession.open(Lowering.lower(plan), TIMEOUT)) {
      EmulatedCasesTest.check(new Case(folder), plan, session);
    }
  }

  /** Products, rows and collectives of all kinds that are ours, each reading what others wrote. */
  private static Plan mixed() {
    var text =
        """
        graph version 1
        group g = [0, 1, 2, 3]
        graph mixed(x: bf16[64, 512], w: bf16[512, 512], v: f32[512], y: f32[256, 96]) {
          a = aten::mm(x, w)
          f = prims::convert_element_type(a, torch.float32)
          s = aten::pow.Tensor_Scalar(f, 2)
          m = aten::mean.dim(s, [-1], True)
          e = aten::add.Scalar(m, 1e-05)
          r = aten::rsqrt(e)
          n = aten::mul.Tensor(f, r)
          k = aten::mul.Tensor(n, v)
          b = prims::convert_element_type(k, torch.bfloat16)
          c = _c10d_functional::all_reduce(b, "sum", "g")
          d = _c10d_functional::wait_tensor(c)
          h = _c10d_functional::all_gather_into_tensor(d, 4, "g")
          i = aten::_softmax(y, -1, False)
          j = _c10d_functional::reduce_scatter_tensor(i, "sum", 4, "g")
          l = _c10d_functional::wait_tensor(h)
          o = _c10d_functional::wait_tensor(j)
          p = aten::mm(l, w)
          q = aten::silu(p)
          u = _c10d_functional::all_gather_into_tensor(o, 4, "g")
          z = _c10d_functional::wait_tensor(u)
          t = aten::sum.dim_IntList(z, [1])
          return d, q, o, t
        }
        """;
    return Compiler.forTarget(Target.H200_X4)
        .with(
            CompileOptions.DEFAULT.withVariants(
                ImmutableMap.of(
                    "all_reduce", Variant.TWO_SHOT,
                    "all_gather", Variant.COPY_ENGINE,
                    "reduce_scatter", Variant.ONE_SHOT)))
        .compile(GraphParser.parse(new SourceFile("mixed.graph", text)));
  }

  /** Fresh memory is poisoned, so that what is read too early is not a number. */
  @Test
  void repeatsToTheBit() {
    Gpus.require(4);
    try (var session = CudaSession.open(Lowering.lower(mixed()), TIMEOUT)) {
      for (int rank = 0; rank < 4; rank++) {
        for (var name : session.inputNames()) {
          SeededInputs.fill(session.input(rank, name), 9, rank, name);
        }
      }
      session.run();
      var first = new ArrayList<HostTensor>();
      for (int rank = 0; rank < 4; rank++) {
        for (int i = 0; i < session.outputCount(); i++) {
          var output = session.output(rank, i).orElseThrow();
          var copy = output.copyAs(output.type());
          first.add(copy);
        }
      }
      for (int run = 1; run < RUNS; run++) {
        session.run();
        for (int k = 0; k < first.size(); k++) {
          int rank = k / session.outputCount();
          int index = k % session.outputCount();
          // The last output depends on the collectives before it: it is looked at each time.
          if (run % LOOKS == 0 || index == session.outputCount() - 1 || index == 0) {
            var output = session.output(rank, index).orElseThrow();
            Bits.assertSame(
                output, first.get(k), "output %s of rank %s, run %s".formatted(index, rank, run));
          }
        }
      }
    }
  }

  @Test
  void agreesInAMixedPlan() {
    Gpus.require(4);
    var plan = mixed();
    try (var gpu = CudaSession.open(Lowering.lower(plan), TIMEOUT);
        var host = Session.open(plan, new HostBackend())) {
      for (var session : List.of(gpu, host)) {
        for (int rank = 0; rank < 4; rank++) {
          for (var name : session.inputNames()) {
            SeededInputs.fill(session.input(rank, name), 9, rank, name);
          }
        }
        session.run();
      }
      for (int rank = 0; rank < 4; rank++) {
        assertThat(OutputCheck.of(plan, gpu, rank, LocalPrograms.outputs(host, rank)))
            .as("rank %s", rank)
            .hasSize(gpu.outputCount())
            .allMatch(OutputCheck::agrees);
      }
    }
  }
}
