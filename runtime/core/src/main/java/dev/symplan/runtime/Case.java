package dev.symplan.runtime;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.Arg;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.graph.Graph;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.Safetensors;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A directory with a graph's inputs and expected outputs: {@code rankN.inputs.safetensors} and
 * {@code rankN.outputs.safetensors}, whose {@code inI} and {@code outI} are the I-th argument and
 * result of the graph. {@code constants.safetensors} holds inputs that are the same on all ranks,
 * by their names, such as the constants of a module.
 */
public final class Case {
  private static final String CONSTANTS = "constants.safetensors";

  private final Path folder;

  public Case(Path folder) {
    this.folder = folder;
  }

  /** {@return where its files are} */
  public Path folder() {
    return folder;
  }

  /** {@return whether a directory has inputs} */
  public static boolean isCase(Path folder) {
    return Files.isDirectory(folder) && Files.exists(folder.resolve("rank0.inputs.safetensors"));
  }

  /**
   * Fills the inputs of every rank of this process: with the case's own tensors, or else with
   * {@code weights}, or else with the case's constants.
   *
   * @throws CompileException when a file or tensor is missing or of another type
   */
  public void fillInputs(Session session, Plan plan, Weights weights) {
    var constants = constants(plan);
    for (int rank : session.localRanks()) {
      var file = folder.resolve("rank" + rank + ".inputs.safetensors");
      var tensors = Safetensors.read(file);
      for (int i = 0; i < session.inputNames(rank).size(); i++) {
        var name = "in" + i;
        if (!tensors.containsKey(name)
            && (weights.fill(session, plan, rank, i) || constants.fill(session, plan, rank, i))) {
          continue;
        }
        var input = session.input(rank, i);
        if (input.isPresent()) {
          var called = "input '%s'".formatted(session.inputNames(rank).get(i));
          input.get().copyFrom(tensor(file, tensors, name, input.get().type(), called));
        }
      }
    }
  }

  private Weights constants(Plan plan) {
    var file = folder.resolve(CONSTANTS);
    if (!Files.exists(file)) {
      return Weights.NONE;
    }
    return Weights.read(file, plan);
  }

  /** {@return whether there are outputs to compare with} */
  public boolean hasOutputs() {
    return Files.exists(outputs(0));
  }

  /**
   * Refuses a plan for fewer ranks than there are outputs of: these depend on all ranks.
   *
   * @throws CompileException when there are outputs of a rank that the plan does not have
   */
  public void checkRanks(Plan plan) {
    var next = outputs(plan.worldSize());
    if (Files.exists(next)) {
      throw wrong(
          next,
          "the plan is for %s, but the case has outputs of more"
              .formatted(Units.count(plan.worldSize(), "rank")),
          "leave out --ranks");
    }
  }

  private Path outputs(int rank) {
    return folder.resolve("rank" + rank + ".outputs.safetensors");
  }

  /**
   * {@return the expected outputs of a rank; empty for those that are not tensors}
   *
   * @throws CompileException when the file or a tensor is missing or of another type
   */
  public ImmutableList<Optional<HostTensor>> expected(int rank, Graph graph) {
    var file = outputs(rank);
    var tensors = Safetensors.read(file);
    var expected = ImmutableList.<Optional<HostTensor>>builder();
    for (int i = 0; i < graph.outputs().size(); i++) {
      expected.add(
          graph.outputs().get(i) instanceof Arg.Ref(Value value) && value.isTensor()
              ? Optional.of(tensor(file, tensors, "out" + i, value.tensor(), "output " + i))
              : Optional.empty());
    }
    return expected.build();
  }

  private static HostTensor tensor(
      Path file,
      ImmutableMap<String, HostTensor> tensors,
      String name,
      TensorType type,
      String called) {
    @Nullable HostTensor tensor = tensors.get(name);
    if (tensor == null) {
      throw wrong(
          file,
          "no tensor '%s' was found for %s".formatted(name, called),
          "the file has " + tensors.keySet());
    }
    if (tensor.dtype() != type.dtype() || !tensor.type().sizes().equals(type.sizes())) {
      throw wrong(
          file, "tensor '%s' is %s, but %s is %s".formatted(name, tensor.type(), called, type), "");
    }
    return tensor;
  }

  private static CompileException wrong(Path file, String message, String hint) {
    return CompileException.ofFile(DiagnosticCode.BAD_TENSORS, file, message, hint);
  }

  /** {@return the tensors of one rank's outputs, named as in a case} */
  public static ImmutableMap<String, HostTensor> outputs(Session session, int rank) {
    var tensors = ImmutableMap.<String, HostTensor>builder();
    for (int i = 0; i < session.outputCount(rank); i++) {
      Optional<HostTensor> output = session.output(rank, i);
      if (output.isPresent()) {
        tensors.put("out" + i, output.get());
      }
    }
    return tensors.buildOrThrow();
  }
}
