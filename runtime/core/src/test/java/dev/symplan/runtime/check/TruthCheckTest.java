package dev.symplan.runtime.check;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.runtime.Backend;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.SessionOptions;
import dev.symplan.runtime.check.TruthCheck.Judged;
import dev.symplan.runtime.check.TruthCheck.Outcome;
import dev.symplan.runtime.check.TruthCheck.Unknown;
import dev.symplan.runtime.host.HostBackend;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Two correct evaluations of a mixture of experts choose differently; wrong ones are found. */
class TruthCheckTest {
  /** The router chooses one of eight experts for each of 512 tokens. */
  private static final String EXPERTS =
      """
      graph version 1
      graph experts(x: bf16[512, 64], w: bf16[64, 64], router: bf16[64, 8], experts: bf16[8, 64]) {
        h = aten::mm(x, w)
        logits = aten::mm(h, router)
        best, index = aten::topk(logits, 1)
        row = aten::squeeze.dim(index, 1)
        expert = aten::embedding(experts, row)
        y = aten::mul.Tensor(h, expert)
        return y
      }
      """;

  /** The same, rounded only at its end. */
  private static final String EXPERTS_IN_F32 =
      """
      graph version 1
      graph experts(x: bf16[512, 64], w: bf16[64, 64], router: bf16[64, 8], experts: bf16[8, 64]) {
        x32 = aten::_to_copy(x, dtype=torch.float32)
        w32 = aten::_to_copy(w, dtype=torch.float32)
        router32 = aten::_to_copy(router, dtype=torch.float32)
        h = aten::mm(x32, w32)
        logits = aten::mm(h, router32)
        best, index = aten::topk(logits, 1)
        row = aten::squeeze.dim(index, 1)
        expert = aten::embedding(experts, row)
        y32 = aten::mul.Tensor(h, expert)
        y = aten::_to_copy(y32, dtype=torch.bfloat16)
        return y
      }
      """;

  /** The outputs after the graph's own: what the choice reads, and what it gives. */
  private static final int LOGITS = 1;

  private static final int CHOICE = 2;

  private static Program program(String text) {
    return GraphParser.parse(new SourceFile("test.graph", text));
  }

  private static void fill(Session session) {
    var random = new Random(1);
    for (int i = 0; i < session.inputNames().size(); i++) {
      var tensor = session.input(0, i).orElseThrow();
      var size = tensor.type().sizes();
      for (long row = 0; row < size.get(0); row++) {
        for (long column = 0; column < size.get(1); column++) {
          tensor.set(random.nextGaussian(), row, column);
        }
      }
    }
  }

  private static List<List<Optional<HostTensor>>> run(String text, Backend backend) {
    var plan = Compiler.forDefaultTarget().compile(program(text));
    try (var session = Session.open(plan, backend)) {
      fill(session);
      session.run();
      return List.of(
          IntStream.range(0, session.outputCount())
              .mapToObj(i -> session.output(0, i).map(TruthCheckTest::copy))
              .toList());
    }
  }

  private static Outcome judge(String text, Backend backend, String expected) {
    return judge(text, backend, run(expected, new HostBackend()));
  }

  private static Outcome judge(
      String text, Backend backend, List<List<Optional<HostTensor>>> expected) {
    return TruthCheck.of(
        program(text),
        Compiler.forDefaultTarget(),
        backend,
        SessionOptions.DEFAULT,
        (session, _) -> fill(session),
        run(text, backend),
        expected);
  }

  /** {@return the host backend, but for one output, of which a copy is changed} */
  private static Backend changing(int output, UnaryOperator<HostTensor> change) {
    return new TamperedBackend(
        (_, index, tensor) -> index == output ? change.apply(copy(tensor)) : tensor);
  }

  private static Judged judged(Backend backend) {
    return (Judged) judge(EXPERTS, backend, EXPERTS_IN_F32);
  }

  @Test
  void choicesOfAlmostEqualOperandsAreExplained() {
    var judged = judged(new HostBackend());
    var output = judged.outputs().getFirst();
    assertThat(output.actual()).isLessThan(0.01);
    assertThat(judged.choices()).singleElement().satisfies(c -> assertThat(c.fault()).isEmpty());
    assertThat(judged.agrees()).isTrue();
  }

  @Test
  void theExpectedOutputsAreFurtherAwayThanTheTolerance() {
    var own = run(EXPERTS, new HostBackend()).getFirst().getFirst().orElseThrow();
    var expected = run(EXPERTS_IN_F32, new HostBackend()).getFirst().getFirst().orElseThrow();
    assertThat(TruthCheck.distance(own, expected.copyAs(Widening.of(expected.type()))).relativeL2())
        .isGreaterThan(0.01);
  }

  @Test
  void outputsThatAreTooLargeAreNotExplained() {
    var judged = judged(changing(0, output -> times(output, 1.03)));
    assertThat(judged.outputs().getFirst().agrees()).isFalse();
    assertThat(judged.agrees()).isFalse();
  }

  @Test
  void expectedOutputsOfAnotherGraphAreNotExplained() {
    var other = EXPERTS_IN_F32.replace("y32 =", "z = aten::mul.Tensor(h, 1.05)\n  y32 =");
    other = other.replace("aten::mul.Tensor(h, expert)", "aten::mul.Tensor(z, expert)");
    var judged = (Judged) judge(EXPERTS, new HostBackend(), other);
    assertThat(judged.outputs().getFirst().actual()).isLessThan(0.01);
    assertThat(judged.outputs().getFirst().expectedAgrees()).isFalse();
    assertThat(judged.agrees()).isFalse();
  }

  @Test
  void choicesThatAreNotCloseExplainNothing() {
    // Every element is far above zero, so that no error within the tolerance changes a choice.
    var text =
        """
        graph version 1
        graph signs(x: bf16[64, 64]) {
          far = aten::mul.Tensor(x, 64.0)
          shifted = aten::add.Tensor(far, 4096.0)
          chosen = aten::gt.Scalar(shifted, 0.0)
          y = aten::where.self(chosen, x, far)
          return y
        }
        """;
    var other = text.replace("aten::where.self(chosen, x, far)", "aten::where.self(chosen, x, x)");
    var same = (Judged) judge(text, new HostBackend(), other);
    assertThat(same.agrees()).isTrue();
    var oneOff = changing(0, output -> plus(output, 16));
    var wrong = ((Judged) judge(text, oneOff, text)).outputs().getFirst();
    assertThat(wrong.chosen()).isEqualTo(1);
    var expectedOff = (Judged) judge(text, new HostBackend(), run(text, oneOff));
    assertThat(expectedOff.agrees()).isFalse();
  }

  @Test
  void choicesThatTheOperandDoesNotGiveAreNotExplained() {
    var judged = judged(changing(CHOICE, TruthCheckTest::other));
    assertThat(judged.choices().getFirst().fault().orElseThrow())
        .contains("another choice for the operands of the run");
    assertThat(judged.agrees()).isFalse();
  }

  @Test
  void choicesOfWrongOperandsAreNotExplained() {
    var judged = judged(changing(LOGITS, logits -> times(logits, 1.1)));
    assertThat(judged.choices().getFirst().fault().orElseThrow())
        .contains("'logits' is further from f64 than rounding explains");
  }

  @Test
  void oneWrongElementOfAnOperandIsEnough() {
    var judged = judged(changing(LOGITS, logits -> plus(logits, 4)));
    assertThat(judged.agrees()).isFalse();
  }

  @Test
  void bitsOfFloatsHaveNoTruth() {
    var text =
        """
        graph version 1
        graph bits(x: bf16[4, 4]) {
          y = aten::view.dtype(x, torch.int16)
          return y
        }
        """;
    assertThat(((Unknown) judge(text, new HostBackend(), text)).reason())
        .isEqualTo("aten::view.dtype (test.graph:3) reads the bits of floats");
  }

  @Test
  void everyChoiceIsListedWithWhatItReads() {
    assertThat(Choice.of(program(EXPERTS).graphs().getFirst()))
        .singleElement()
        .satisfies(
            choice ->
                assertThat(ImmutableList.copyOf(choice.given()))
                    .extracting(value -> value.name())
                    .containsExactly("logits", "index"));
  }

  private static HostTensor copy(HostTensor tensor) {
    return tensor.copyAs(tensor.type().contiguous());
  }

  private static HostTensor times(HostTensor tensor, double factor) {
    forEach(tensor, (row, column) -> tensor.set(tensor.get(row, column) * factor, row, column));
    return tensor;
  }

  private static HostTensor plus(HostTensor tensor, double difference) {
    tensor.set(tensor.get(0, 0) + difference, 0, 0);
    return tensor;
  }

  private static HostTensor other(HostTensor choice) {
    choice.setLong((choice.getLong(0, 0) + 1) % 8, 0, 0);
    return choice;
  }

  @FunctionalInterface
  private interface Place {
    void visit(long row, long column);
  }

  private static void forEach(HostTensor tensor, Place place) {
    for (long row = 0; row < tensor.type().size(0); row++) {
      for (long column = 0; column < tensor.type().size(1); column++) {
        place.visit(row, column);
      }
    }
  }
}
