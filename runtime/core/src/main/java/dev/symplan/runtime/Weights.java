package dev.symplan.runtime;

import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.pt2.ExportArchive;
import dev.symplan.planner.io.ProgramReader;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.Safetensors;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Tensors for inputs of a graph, by the inputs' names, the same for all ranks: those that a {@code
 * torch.export} archive holds for its program, or those of a safetensors file.
 */
public final class Weights {

  /** No tensors. */
  public static final Weights NONE =
      new Weights(Path.of(""), ImmutableMap.<String, HostTensor>of());

  private final Path file;
  private final ImmutableMap<String, HostTensor> tensors;

  private Weights(Path file, ImmutableMap<String, HostTensor> tensors) {
    this.file = file;
    this.tensors = tensors;
  }

  /** {@return the archive that an input of the compiler is or, as a directory, has} */
  public static Optional<Path> archiveOf(Path input) {
    var file = Files.isDirectory(input) ? input.resolve(ProgramReader.ARCHIVE) : input;
    return ExportArchive.isArchive(file) ? Optional.of(file) : Optional.empty();
  }

  /**
   * {@return the tensors in an archive or a safetensors file}
   *
   * @param graph the name of the archive's program, where it has several
   * @throws CompileException when the file cannot be read, or a tensor is missing or damaged
   */
  public static Weights read(Path file, String graph) {
    if (!ExportArchive.isArchive(file)) {
      return new Weights(file, Safetensors.read(file));
    }
    var tensors = ImmutableMap.<String, HostTensor>builder();
    for (var weight : ExportArchive.open(file).weights(graph)) {
      tensors.put(weight.input(), new HostTensor(weight.memory(), weight.type()));
    }
    return new Weights(file, tensors.buildOrThrow());
  }

  /** {@return the inputs that have a tensor here} */
  public ImmutableSet<String> names() {
    return tensors.keySet();
  }

  /** {@return the tensor for the input of this name, if there is one} */
  public Optional<HostTensor> tensor(String input) {
    return Optional.ofNullable(tensors.get(input));
  }

  /**
   * Writes the tensors to a safetensors file, whole or not at all.
   *
   * @throws CompileException when the file cannot be written, or cannot hold a tensor's type
   */
  public void write(Path to) {
    tensors.forEach(
        (name, tensor) -> {
          if (!Safetensors.canHold(tensor.dtype())) {
            throw wrong(
                to,
                "safetensors files cannot hold '%s', which is %s".formatted(name, tensor.type()),
                "");
          }
        });
    Safetensors.write(to, tensors);
  }

  /**
   * Compares the tensors with the inputs of a plan.
   *
   * @throws CompileException when one is for no input, or of another type
   */
  public void check(Plan plan) {
    for (var rankPlan : plan.rankPlans()) {
      var inputs = ImmutableMap.<String, Value>builder();
      rankPlan.graph().inputs().forEach(input -> inputs.put(input.name(), input));
      var byName = inputs.buildOrThrow();
      tensors.forEach((name, tensor) -> check(name, tensor, byName.get(name)));
    }
  }

  private void check(String name, HostTensor tensor, @Nullable Value input) {
    if (input == null || !input.isTensor()) {
      throw wrong(
          file,
          "tensor '%s' does not match any input of the graph".formatted(name),
          "tensors must be named after inputs");
    }
    var type = input.tensor();
    if (type.dtype() != tensor.dtype() || !type.sizes().equals(tensor.type().sizes())) {
      throw wrong(
          file, "tensor '%s' is %s, but the input is %s".formatted(name, tensor.type(), type), "");
    }
  }

  /**
   * Gives an input its tensor: without a copy where the graph leaves the input with the caller and
   * writes nothing in place, so that all ranks read the same memory.
   *
   * @return whether there is a tensor for it
   */
  public boolean fill(Session session, Plan plan, int rank, int index) {
    @Nullable HostTensor tensor = tensors.get(session.inputNames().get(index));
    if (tensor == null) {
      return false;
    }
    TensorType type = plan.forRank(rank).graph().inputs().get(index).tensor();
    boolean shared =
        session.isExternalInput(rank, index)
            && type.strides().equals(tensor.type().strides())
            && plan.rankPlans().stream()
                .flatMap(rankPlan -> rankPlan.graph().ops().stream())
                .noneMatch(op -> op.def().schema().mutates());
    if (shared) {
      session.bindInput(rank, index, tensor.as(type));
    } else {
      session.input(rank, index).orElseThrow().copyFrom(tensor);
    }
    return true;
  }

  private static CompileException wrong(Path file, String message, String hint) {
    return CompileException.ofFile(DiagnosticCode.BAD_TENSORS, file, message, hint);
  }
}
