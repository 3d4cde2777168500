package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Executable;
import dev.symplan.codegen.Lowering;
import dev.symplan.codegen.cuda.UnsupportedOnGpu;
import dev.symplan.ir.op.OpDef;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.fuzz.LocalProgram;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.Optional;
import java.util.regex.Pattern;
import java.util.stream.IntStream;

/** Random programs over all ops, as far as GPUs can run them. */
final class RandomPrograms {
  private static final Pattern NAMED = Pattern.compile("'([^']+)' \\(");

  private RandomPrograms() {}

  /** A program with what is executed for it. */
  record Lowered(LocalProgram program, Executable executable) {

    /** {@return how a run from fresh inputs compares with the host} */
    OpByOp run(Session session) {
      program.fill(session);
      var inputs =
          IntStream.range(0, session.inputNames().size())
              .mapToObj(i -> session.input(0, i).map(RandomPrograms::copy))
              .toList();
      session.run();
      return OpByOp.compare(program.graph(), session, (_, index) -> inputs.get(index));
    }
  }

  private static HostTensor copy(HostTensor tensor) {
    return tensor.copyAs(tensor.type());
  }

  /** {@return the program of a seed without what GPUs cannot run; empty if nothing is left} */
  static Optional<Lowered> make(ImmutableList<OpDef> ops, long seed) {
    var program = Optional.of(LocalProgram.make(ops, seed));
    while (program.isPresent()) {
      var plan =
          Compiler.forTarget(Target.H200_X4)
              .with(CompileOptions.DEFAULT.withRanks(1))
              .compile(program.get().program());
      var executable = Lowering.lower(plan);
      try {
        EmulatedSession.lower(executable.ranks().getFirst());
        return Optional.of(new Lowered(program.get(), executable));
      } catch (UnsupportedOnGpu e) {
        var named = NAMED.matcher(String.valueOf(e.getMessage()));
        program = named.find() ? program.get().without(named.group(1)) : Optional.empty();
      }
    }
    return Optional.empty();
  }
}
