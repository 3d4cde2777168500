package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.MemorySpace;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.runtime.CallerMemory;
import dev.symplan.runtime.CallerMemory.Stretches;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.Signature;
import dev.symplan.runtime.Signature.Slot;
import dev.symplan.runtime.Signature.Use;
import dev.symplan.runtime.tensor.Elements;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Runs on memory that {@link Session#bind} was given. */
@Timeout(60)
class CallerMemoryTest {
  private static final int ELEMENTS = 32;
  private static final long BYTES = ELEMENTS * 4L;

  /** One output in each of the places that there are. */
  private static final String PLACES =
      """
      graph places(x: f32[8, 4], n: i64[4]) {
        h = aten::relu(x)
        t = aten::t(h)
        row = aten::select.int(h, 0, 7)
        v = aten::view(x, [4, 8])
        e = aten::exp(h)
        last = aten::select.int(e, 0, 7)
        return h, t, row, v, last, n
      }
      """;

  private static Session open(String text, MemorySpace inputs, MemorySpace outputs) {
    return Session.open(
        Programs.plan(text, CompileOptions.DEFAULT.withInputs(inputs).withOutputs(outputs)),
        new HostBackend());
  }

  private static Session open(String text) {
    return open(text, MemorySpace.EXTERNAL, MemorySpace.EXTERNAL);
  }

  private static Stretches all(MemorySegment... tensors) {
    var addresses = ImmutableLongArray.builder();
    var bytes = ImmutableLongArray.builder();
    for (var tensor : tensors) {
      addresses.add(tensor.address());
      bytes.add(tensor.byteSize());
    }
    return new Stretches(addresses.build(), bytes.build());
  }

  private static MemorySegment tensor(Arena arena, float first) {
    var tensor = arena.allocate(BYTES, 64);
    for (int i = 0; i < ELEMENTS; i++) {
      tensor.set(Elements.FLOAT, i * 4L, first + i);
    }
    return tensor;
  }

  private static float at(MemorySegment tensor, int index) {
    return tensor.get(Elements.FLOAT, index * 4L);
  }

  private static final String DOUBLED =
      """
      graph doubled(x: f32[8, 4]) {
        y = aten::add.Tensor(x, x)
        z = aten::mul.Tensor(y, 3.0)
        return y, z
      }
      """;

  @Test
  void saysWhatRunsDoWithIt() {
    var options =
        CompileOptions.DEFAULT
            .withInputs(MemorySpace.EXTERNAL)
            .withSpaces(ImmutableMap.of("h", MemorySpace.EXTERNAL));
    try (var session = Session.open(Programs.plan(PLACES, options), new HostBackend())) {
      var signature = session.signature(0);
      assertThat(signature.inputs()).extracting(Slot::use).containsOnly(new Use.Direct());
      assertThat(signature.outputs())
          .extracting(Slot::use)
          .satisfiesExactly(
              use -> assertThat(use).isEqualTo(new Use.Direct()),
              use -> assertThat(use).isEqualTo(new Use.OfOutput(0, 0)),
              use -> assertThat(use).isEqualTo(new Use.OfOutput(0, 7 * 16)),
              use -> assertThat(use).isEqualTo(new Use.OfInput(0, 0)),
              use -> assertThat(use).isInstanceOf(Use.Copied.class),
              use -> assertThat(use).isEqualTo(new Use.OfInput(1, 0)));
    }
  }

  @Test
  void saysThatNumbersNeedNone() {
    try (var session =
        open("graph number(n: int, x: f32[4]) { y = aten::relu(x)\n return y, None }")) {
      Signature signature = session.signature(0);
      assertThat(signature.inputs().get(0).use()).isEqualTo(new Use.Nothing());
      assertThat(signature.outputs().get(1).use()).isEqualTo(new Use.Nothing());
    }
  }

  @Test
  void runsOnOtherMemoryEachTime() {
    try (var arena = Arena.ofShared();
        var session = open(DOUBLED)) {
      var inputs = new ArrayList<MemorySegment>();
      var outputs = new ArrayList<List<MemorySegment>>();
      for (int run = 0; run < 5; run++) {
        // The second input is used again with a new output, the third with new inputs.
        var input = run == 2 ? inputs.get(1) : tensor(arena, 100 * run);
        var results = run == 4 ? outputs.get(3) : List.of(tensor(arena, -1), tensor(arena, -1));
        session.bind(0, new CallerMemory(all(input), all(results.toArray(MemorySegment[]::new))));
        session.runIn(0);
        inputs.add(input);
        outputs.add(results);
      }
      for (int run = 0; run < 5; run++) {
        int last = run == 3 ? 4 : run;
        assertThat(at(outputs.get(run).get(0), 31)).isEqualTo(2 * at(inputs.get(last), 31));
        assertThat(at(outputs.get(run).get(1), 0)).isEqualTo(6 * at(inputs.get(last), 0));
      }
    }
  }

  @Test
  void copiesWhatThePlanHasInArenas() {
    try (var arena = Arena.ofShared();
        var session = open(DOUBLED, MemorySpace.LOCAL, MemorySpace.LOCAL)) {
      var signature = session.signature(0);
      assertThat(signature.inputs()).allMatch(slot -> slot.use() instanceof Use.Copied);
      assertThat(signature.outputs()).allMatch(slot -> slot.use() instanceof Use.Copied);
      var input = tensor(arena, 1);
      var sum = tensor(arena, -1);
      var product = tensor(arena, -1);
      session.bind(0, new CallerMemory(all(input), all(sum, product)));
      session.runIn(0);
      assertThat(at(sum, 3)).isEqualTo(8);
      // Each run takes what the input holds then.
      input.set(Elements.FLOAT, 12, 5);
      session.run();
      assertThat(at(product, 3)).isEqualTo(30);
      assertThat(at(input, 3)).isEqualTo(5);
    }
  }

  /** Ops write into it where the plan has it, and the caller finds that where it lies. */
  @Test
  void copiesBackWhatOpsWrite() {
    var text =
        """
        graph counts(x: f32[8, 4], y: f32[8, 4]) {
          a = aten::add_.Tensor(x, y)
          b = aten::mul.Tensor(x, y)
          return b
        }
        """;
    try (var arena = Arena.ofShared();
        var session = open(text, MemorySpace.LOCAL, MemorySpace.LOCAL)) {
      assertThat(session.signature(0).inputs())
          .extracting(Slot::use)
          .satisfiesExactly(
              use -> assertThat(((Use.Copied) use).back()).isTrue(),
              use -> assertThat(((Use.Copied) use).back()).isFalse());
      assertThat(session.mayWriteInput(0, 0)).isTrue();
      assertThat(session.mayWriteInput(0, 1)).isFalse();
      var count = tensor(arena, 1);
      var step = tensor(arena, 10);
      var product = tensor(arena, -1);
      session.bind(0, new CallerMemory(all(count, step), all(product)));
      for (int run = 1; run <= 3; run++) {
        session.runIn(0);
        assertThat(at(count, 0)).isEqualTo(1 + run * 10);
        assertThat(at(product, 0)).isEqualTo(10 * at(count, 0));
      }
      session.run("counts", 2);
      assertThat(at(count, 0)).isEqualTo(51);
      assertThat(at(step, 0)).isEqualTo(10);
    }
  }

  @Test
  void runsSeveralRanks() {
    try (var arena = Arena.ofShared();
        var session = open(HostSessionTest.SUM)) {
      var outputs = new ArrayList<MemorySegment>();
      for (int rank = 0; rank < session.ranks(); rank++) {
        outputs.add(tensor(arena, -1));
        if (rank == 3) {
          assertThatThrownBy(() -> session.runIn(0))
              .isInstanceOf(IllegalStateException.class)
              .hasMessage("memory is bound for 3 of 4 ranks");
        }
        session.bind(rank, new CallerMemory(all(tensor(arena, rank)), all(outputs.get(rank))));
      }
      session.runIn(0);
      assertThat(outputs).allMatch(output -> at(output, 10) == 40 + 6);
    }
  }

  @Test
  void refusesMemoryThatDoesNotFit() {
    try (var arena = Arena.ofShared();
        var session = open(DOUBLED)) {
      var good = tensor(arena, 0);
      var two = all(tensor(arena, 0), tensor(arena, 0));
      assertThatThrownBy(
              () -> session.bind(0, new CallerMemory(all(good.asSlice(0, BYTES - 4)), two)))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage(
              "input 'x' of rank 0 is f32[8, 4], which takes 128 bytes; the caller has 124");
      assertThatThrownBy(() -> session.bind(0, new CallerMemory(all(good), all(good))))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage("memory for 1 outputs, but the graph has 2");
      assertThatThrownBy(() -> session.bind(0, new CallerMemory(two, two)))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage("memory for 2 inputs, but the graph has 1");
      assertThatThrownBy(
              () ->
                  session.bind(
                      0, new CallerMemory(all(arena.allocate(BYTES + 64, 64).asSlice(4)), two)))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageMatching(
              "input 'x' of rank 0: the address 0x[0-9a-f]+4 is not a multiple of 16 bytes");
      var nowhere = new Stretches(ImmutableLongArray.of(0, 0), ImmutableLongArray.of(BYTES, BYTES));
      assertThatThrownBy(() -> session.bind(0, new CallerMemory(all(good), nowhere)))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage("output 0 of rank 0: the address is 0");
      assertThatThrownBy(() -> new Stretches(ImmutableLongArray.of(16), ImmutableLongArray.of()))
          .isInstanceOf(IllegalArgumentException.class);
    }
  }
}
