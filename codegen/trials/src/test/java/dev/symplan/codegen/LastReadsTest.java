package dev.symplan.codegen;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import com.google.common.collect.Range;
import com.google.common.collect.RangeSet;
import com.google.common.collect.TreeRangeSet;
import dev.symplan.codegen.Instruction.Border;
import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.codegen.Instruction.Fused;
import dev.symplan.codegen.Instruction.LocalOp;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.verify.RandomPrograms;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/**
 * What a fused instruction reads last may be nothing from then on: no later instruction reads it,
 * and no output has it, until something else is written there.
 */
class LastReadsTest {
  private static final int PROGRAMS = Integer.getInteger("symplan.graphs", 120);

  private record Memory(ArenaKind arena, int index) {
    static Memory of(TensorRef ref) {
      return new Memory(ref.arena(), ref.index());
    }
  }

  /** The bytes that are nothing. */
  private final Map<Memory, RangeSet<Long>> lost = new HashMap<>();

  private final List<String> findings = new ArrayList<>();
  private int found;

  private static Range<Long> bytes(TensorRef ref) {
    return Range.closedOpen(ref.offset(), ref.offset() + ref.type().storageBytes());
  }

  private RangeSet<Long> lost(TensorRef ref) {
    return lost.computeIfAbsent(Memory.of(ref), _ -> TreeRangeSet.create());
  }

  private void read(TensorRef ref, Object by) {
    if (lost(ref).intersects(bytes(ref))) {
      findings.add(by + " reads " + ref);
    }
  }

  private void write(TensorRef ref) {
    lost(ref).remove(bytes(ref));
  }

  private void run(Instruction instruction) {
    switch (instruction) {
      case LocalOp op -> {
        op.args().stream().flatMap(Operand::tensors).forEach(ref -> read(ref, op.name()));
        op.results().stream().flatMap(Optional::stream).forEach(this::write);
      }
      case Fused fused -> {
        for (var part : fused.parts()) {
          part.args().stream().flatMap(Operand::tensors).forEach(ref -> read(ref, part.name()));
          part.results().stream().flatMap(Operand::tensors).forEach(this::write);
        }
        var written =
            fused.parts().stream()
                .flatMap(part -> part.results().stream())
                .flatMap(Operand::tensors)
                .toList();
        for (var ref : fused.lastReads()) {
          found++;
          lost(ref).add(bytes(ref));
        }
        written.forEach(this::write);
      }
      case Collective collective -> {
        collective.operands().forEach(ref -> read(ref, collective.name()));
        collective.results().forEach(this::write);
      }
      case Border _,
          Instruction.SetupEnd _,
          Instruction.RecordEvent _,
          Instruction.AwaitEvent _ -> {}
    }
  }

  /** None if the compiler refuses the program. */
  private static List<RankProgram> ranks(long seed) {
    try {
      return Lowering.lower(RandomPrograms.planned(seed).plan()).ranks();
    } catch (CompileException e) {
      return List.of();
    }
  }

  private void run(RankProgram program) {
    lost.clear();
    program.instructions().forEach(this::run);
    program.outputs().stream().flatMap(Optional::stream).forEach(ref -> read(ref, "the caller"));
  }

  @Test
  void nothingReadsThemAfterwards() {
    for (long seed = RandomPrograms.SEED; seed < RandomPrograms.SEED + PROGRAMS; seed++) {
      ranks(seed).forEach(this::run);
      assertThat(findings).as("seed %s", seed).isEmpty();
    }
    assertThat(found).isGreaterThan(PROGRAMS / 3);
  }

  /** The check itself finds a tensor that is read again. */
  @Test
  void aTensorThatIsReadAgainIsFound() {
    int wrong = 0;
    for (long seed = RandomPrograms.SEED; wrong == 0; seed++) {
      for (var rank : ranks(seed)) {
        run(withAllAsLast(rank));
        wrong += findings.size();
      }
    }
    assertThat(findings).first().asString().contains(" reads ");
  }

  private static RankProgram withAllAsLast(RankProgram program) {
    return new RankProgram(
        program.rank(),
        program.localBytes(),
        program.inputs(),
        program.inputNames(),
        program.outputs(),
        program.buffers(),
        program.instructions().stream()
            .map(
                instruction ->
                    instruction instanceof Fused fused
                        ? new Fused(
                            fused.stream(),
                            fused.rows(),
                            fused.parts(),
                            fused.parts().stream()
                                .flatMap(part -> part.args().stream())
                                .flatMap(Operand::tensors)
                                .collect(ImmutableSet.toImmutableSet()))
                        : instruction)
            .collect(ImmutableList.toImmutableList()),
        program.events());
  }
}
