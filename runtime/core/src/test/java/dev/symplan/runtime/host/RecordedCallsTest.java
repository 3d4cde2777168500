package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableListMultimap;
import com.google.common.collect.ImmutableSet;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/**
 * Every op gives what PyTorch gives, wherever its operands and results lie.
 *
 * <p>The calls were recorded by {@code recorded/ops.py}.
 */
class RecordedCallsTest {
  private static final long SEED = Fuzz.seed(20261121);
  private static final ImmutableListMultimap<String, RecordedCall> CALLS = RecordedCall.all();

  /** The numbers of these must fit the other arguments. */
  private static final ImmutableSet<String> FIT_ARGUMENTS =
      ImmutableSet.of("aten::as_strided_scatter", "aten::repeat_interleave.self_Tensor");

  /** Random numbers are not PyTorch's, guards give nothing, empty tensors hold anything. */
  private static final Pattern NOT_RECORDED =
      Pattern.compile(
          """
          aten::(rand|normal|bernoulli|multinomial|uniform|exponential|native_dropout$|dropout|_assert\
          |(new_)?empty).*|prims::(inductor_.*|device_put|_unsafe_index_put_)|symplan::.*\
          |aten::(to\\.|type_as|contiguous|positive).*\
          """);

  @Test
  void everyOtherOpIsRecorded() {
    var recorded = CALLS.keySet();
    assertThat(HostKernels.names())
        .filteredOn(name -> !NOT_RECORDED.matcher(name).matches() && !isFormInPlace(name))
        .isSubsetOf(recorded);
  }

  /** The forms in place are one implementation; a few of them are recorded. */
  private static boolean isFormInPlace(String name) {
    return BuiltinOps.registry().get(name).schema().mutates();
  }

  private static Stream<DynamicTest> forEachOp(Consumer<RecordedCall> test) {
    return forEachOp(_ -> true, test);
  }

  /** A test for each op that has such calls, so that what is not checked is not counted. */
  private static Stream<DynamicTest> forEachOp(
      Predicate<RecordedCall> calls, Consumer<RecordedCall> test) {
    var byOp =
        CALLS.values().stream()
            .filter(calls)
            .collect(
                ImmutableListMultimap.toImmutableListMultimap(
                    call -> call.def().name().toString(), call -> call));
    assertThat(byOp.keySet()).isNotEmpty();
    return byOp.asMap().entrySet().stream()
        .map(
            entry -> DynamicTest.dynamicTest(entry.getKey(), () -> entry.getValue().forEach(test)));
  }

  @TestFactory
  Stream<DynamicTest> giveWhatPyTorchGives() {
    return forEachOp(
        call -> call.expected().stream().anyMatch(Optional::isPresent),
        call -> {
          var results = call.copied(RecordedCallsTest::sameLayout).run();
          for (int i = 0; i < call.expected().size(); i++) {
            if (call.expected().get(i).isPresent()) {
              assertThat(results.get(i)).as("result %s of %s", i, call).isPresent();
              Closeness.check(call, i, results.get(i).orElseThrow(), call.expected().get(i).get());
            }
          }
        });
  }

  @TestFactory
  Stream<DynamicTest> doNotDependOnTheLayoutOfOperands() {
    return forEachOp(
        call -> !call.readsStrides(),
        call -> {
          var random = new Random(SEED + call.line());
          var expected = call.copied(Programs::copy).run();
          checkSame(call, expected, call.copied(t -> Scattered.copy(t, random).tensor()).run());
        });
  }

  @TestFactory
  Stream<DynamicTest> readExpandedOperands() {
    return forEachOp(
        call ->
            !call.def().schema().mutates()
                && !FIT_ARGUMENTS.contains(call.def().name().toString())
                && call.operands().stream().anyMatch(RecordedCallsTest::canBeExpanded),
        call -> {
          var random = new Random(SEED + call.line());
          for (int i = 0; i < call.operands().size(); i++) {
            var operand = call.operands().get(i);
            if (canBeExpanded(operand)) {
              var expanded = expanded(operand, random);
              var narrow = new ArrayList<HostTensor>(call.operands());
              narrow.set(i, expanded);
              var wide = new ArrayList<HostTensor>(call.operands());
              wide.set(i, Programs.copy(expanded));
              checkSame(call, call.of(wide).run(), call.of(narrow).run());
            }
          }
        });
  }

  private static boolean canBeExpanded(HostTensor operand) {
    return operand.type().numel() > 1;
  }

  /** {@return the tensor with one of its slices in the place of all, without copies} */
  private static HostTensor expanded(HostTensor tensor, Random random) {
    var copy = Programs.copy(tensor);
    int dim = random.nextInt(tensor.type().rank());
    var strides = copy.type().strides().toArray();
    strides[dim] = 0;
    return copy.as(copy.type().withStrides(ImmutableLongArray.copyOf(strides)));
  }

  @TestFactory
  Stream<DynamicTest> writeResultsOfAnyLayout() {
    return forEachOp(
        call -> !call.readsStrides(),
        call -> {
          var random = new Random(SEED + call.line());
          var targets = new ArrayList<Scattered>();
          var expected = call.copied(Programs::copy).run();
          var results =
              call.copied(Programs::copy)
                  .run(
                      type -> {
                        var target = Scattered.of(type, random);
                        targets.add(target);
                        return target.tensor();
                      });
          checkSame(call, expected, results);
          for (var target : targets) {
            assertThat(target.touchedGaps())
                .as("bytes written beside a result of %s", call)
                .isEmpty();
          }
        });
  }

  @TestFactory
  Stream<DynamicTest> elementwiseOpsMayWriteOverAnOperand() {
    return forEachOp(
        call -> !placesOfResult(call).isEmpty(),
        call -> {
          var expected = call.run();
          for (int i : placesOfResult(call)) {
            var copies = call.copied(RecordedCallsTest::sameLayout);
            var place = copies.operands().get(i);
            checkSame(call, expected, copies.run(t -> place.as(t)));
          }
        });
  }

  /** {@return the operands of an elementwise op whose place its only result can take} */
  private static List<Integer> placesOfResult(RecordedCall call) {
    if (!call.def().has(OpTrait.ELEMENTWISE) || call.infer().size() != 1) {
      return List.of();
    }
    var type = (TensorType) call.infer().getFirst().type();
    return IntStream.range(0, call.operands().size())
        .filter(
            i -> {
              var operand = call.operands().get(i).type();
              return operand.dtype().bytes() == type.dtype().bytes()
                  && operand.sizes().equals(type.sizes())
                  && operand.strides().equals(type.strides());
            })
        .boxed()
        .toList();
  }

  private static HostTensor sameLayout(HostTensor tensor) {
    var copy = HostTensor.allocate(tensor.type());
    Programs.flat(copy).copyFrom(Programs.flat(tensor));
    return copy;
  }

  private static void checkSame(
      RecordedCall call, List<Optional<HostTensor>> expected, List<Optional<HostTensor>> actual) {
    assertThat(actual).hasSameSizeAs(expected);
    for (int i = 0; i < expected.size(); i++) {
      assertThat(actual.get(i).isPresent()).isEqualTo(expected.get(i).isPresent());
      if (expected.get(i).isPresent()
          && !Programs.same(expected.get(i).get(), actual.get(i).orElseThrow())) {
        assertThat(elements(actual.get(i).orElseThrow()))
            .as("result %s of %s, seed %s", i, call, SEED)
            .isEqualTo(elements(expected.get(i).get()));
      }
    }
  }

  private static List<String> elements(HostTensor tensor) {
    var flat = Programs.flat(tensor.contiguous());
    return IntStream.range(0, Math.toIntExact(flat.type().numel()))
        .mapToObj(
            i ->
                flat.dtype().isFloat()
                    ? Double.toHexString(flat.get(i))
                    : Long.toString(flat.getLong(i)))
        .toList();
  }
}
