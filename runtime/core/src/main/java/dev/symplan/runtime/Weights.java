package dev.symplan.runtime;

import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import com.google.common.collect.Maps;
import com.google.common.collect.Sets;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.pt2.ExportArchive;
import dev.symplan.planner.io.ProgramReader;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.tensor.Checkpoint;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.Safetensors;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Optional;
import java.util.function.IntFunction;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Tensors for inputs of a graph, by the inputs' names: those that a {@code torch.export} archive
 * holds for its program, or those of a {@linkplain Checkpoint checkpoint}.
 */
public final class Weights {

  /** No tensors. */
  public static final Weights NONE = new Weights(ImmutableMap.of());

  /**
   * Where an input's tensor is from.
   *
   * @param tensor the name in the file
   * @param whole its type in the file
   * @param ofRank gives the part of each rank
   */
  private record Source(
      Path file, String tensor, TensorType whole, IntFunction<HostTensor> ofRank) {

    static Source same(Path file, String tensor, HostTensor whole) {
      return new Source(file, tensor, whole.type(), _ -> whole);
    }
  }

  /** The characters that names of inputs do not have. */
  private static final Pattern NOT_IN_NAMES = Pattern.compile("[^A-Za-z0-9_]");

  private final ImmutableMap<String, Source> sources;

  private Weights(ImmutableMap<String, Source> sources) {
    this.sources = sources;
  }

  /** {@return the archive that an input of the compiler is or, as a directory, has} */
  public static Optional<Path> archiveOf(Path input) {
    var file = Files.isDirectory(input) ? input.resolve(ProgramReader.ARCHIVE) : input;
    return ExportArchive.isArchive(file) ? Optional.of(file) : Optional.empty();
  }

  /**
   * {@return the tensors of an archive, the same for all ranks}
   *
   * @param graph the name of the archive's program, where it has several
   * @throws CompileException when the file cannot be read, or a tensor is missing or damaged
   */
  public static Weights ofArchive(Path file, String graph) {
    var sources = ImmutableMap.<String, Source>builder();
    for (var weight : ExportArchive.open(file).weights(graph)) {
      var tensor = new HostTensor(weight.memory(), weight.type());
      sources.put(weight.input(), Source.same(file, weight.input(), tensor));
    }
    return new Weights(sources.buildOrThrow());
  }

  /**
   * {@return tensors for inputs of a plan, all of which were checked to fit it}
   *
   * @param file an archive, or a checkpoint as {@link Checkpoint#open} takes it. All ranks get the
   *     same tensors, and each is for the input of its name, in which PyTorch writes {@code _} for
   *     all but letters and digits
   * @throws CompileException when the file cannot be read, or a tensor is damaged, is for no input,
   *     or is of another type
   */
  public static Weights read(Path file, Plan plan) {
    var weights =
        ExportArchive.isArchive(file)
            ? ofArchive(file, plan.name())
            : byName(Checkpoint.open(file), plan);
    weights.check(plan);
    return weights;
  }

  /**
   * {@return tensors for inputs of a plan, all of which were checked to fit it}
   *
   * @param checkpoint as {@link Checkpoint#open} takes it
   * @param layout a {@code weights.json}: for each input, an object with the name of its {@code
   *     tensor} and, if ranks get parts of it, the dimension to {@code shard}
   * @throws CompileException when a file cannot be read, a tensor is missing, damaged or of another
   *     type, or the layout leaves out an input that is named after a tensor of the checkpoint
   */
  public static Weights read(Path checkpoint, Path layout, Plan plan) {
    var opened = Checkpoint.open(checkpoint);
    var sources = ImmutableMap.<String, Source>builder();
    WeightsLayout.read(layout)
        .inputs()
        .forEach(
            (input, entry) -> {
              if (!inputs(plan).contains(input)) {
                throw entry
                    .json()
                    .wrongName(
                        "the graph has no input '%s'".formatted(input),
                        "is this the weights.json of another graph?");
              }
              var found =
                  opened
                      .find(entry.tensor())
                      .orElseThrow(
                          () ->
                              entry
                                  .json()
                                  .get("tensor")
                                  .wrong(
                                      "%s has no tensor '%s' for input '%s'"
                                          .formatted(opened.source(), entry.tensor(), input),
                                      "is this the checkpoint of another model? It has " + opened));
              sources.put(
                  input,
                  new Source(
                      found.file(),
                      entry.tensor(),
                      found.tensor().type(),
                      rank -> entry.part(found.tensor(), rank, plan.worldSize())));
            });
    var weights = new Weights(sources.buildOrThrow());
    weights.checkNoneLeftOut(opened, layout, plan);
    weights.check(plan);
    return weights;
  }

  /** Whoever fills the other inputs would make such a weight up. */
  private void checkNoneLeftOut(Checkpoint checkpoint, Path layout, Plan plan) {
    var used = sources.values().stream().map(Source::tensor).collect(Collectors.toSet());
    var inputs = inputs(plan);
    for (var name : Sets.difference(checkpoint.names(), used)) {
      var input = NOT_IN_NAMES.matcher(name).replaceAll("_");
      if (inputs.contains(input) && !sources.containsKey(input)) {
        throw wrong(
            layout,
            "input '%s' is missing, and %s has the tensor '%s'"
                .formatted(input, checkpoint.source(), name),
            "add it: \"%s\": {\"tensor\": \"%s\"}, with a \"shard\" if ranks get parts of it"
                .formatted(input, name));
      }
    }
  }

  private static Weights byName(Checkpoint checkpoint, Plan plan) {
    var inputs = inputs(plan);
    var sources = new HashMap<String, Source>();
    for (var name : checkpoint.names()) {
      var found = checkpoint.find(name).orElseThrow();
      var input = inputs.contains(name) ? name : NOT_IN_NAMES.matcher(name).replaceAll("_");
      if (sources.put(input, Source.same(found.file(), name, found.tensor())) != null) {
        throw wrong(
            found.file(), "several tensors are called '%s' as an input".formatted(input), "");
      }
    }
    return new Weights(ImmutableMap.copyOf(sources));
  }

  /** The names of the inputs of all ranks. */
  private static ImmutableSet<String> inputs(Plan plan) {
    return plan.rankPlans().stream()
        .flatMap(own -> own.graph().inputs().stream())
        .map(Value::name)
        .collect(ImmutableSet.toImmutableSet());
  }

  /** {@return the inputs that have a tensor here} */
  public ImmutableSet<String> names() {
    return sources.keySet();
  }

  /** {@return a rank's tensor for the input of this name, if there is one} */
  public Optional<HostTensor> tensor(String input, int rank) {
    return Optional.ofNullable(sources.get(input)).map(source -> source.ofRank().apply(rank));
  }

  /**
   * Writes the tensors of rank 0 to a safetensors file, whole or not at all.
   *
   * @throws CompileException when the file cannot be written, or cannot hold a tensor's type
   */
  public void write(Path to) {
    var tensors =
        ImmutableMap.copyOf(Maps.transformValues(sources, source -> source.ofRank().apply(0)));
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

  private void check(Plan plan) {
    var known = inputs(plan);
    sources.forEach(
        (name, source) -> {
          if (!known.contains(name)) {
            throw matchesNone(source);
          }
        });
    for (int rank = 0; rank < plan.worldSize(); rank++) {
      for (var input : plan.forRank(rank).graph().inputs()) {
        @Nullable Source source = sources.get(input.name());
        if (source != null) {
          check(source, input, rank);
        }
      }
    }
  }

  private static CompileException matchesNone(Source source) {
    return wrong(
        source.file(),
        "tensor '%s' does not match any input of the graph".formatted(source.tensor()),
        "tensors must be named after inputs, or a weights.json must say which input takes which");
  }

  private static void check(Source source, Value input, int rank) {
    if (!input.isTensor()) {
      throw matchesNone(source);
    }
    var type = input.tensor();
    var part = source.ofRank().apply(rank).type();
    if (type.dtype() != part.dtype() || !type.sizes().equals(part.sizes())) {
      throw wrong(
          source.file(),
          "tensor '%s' is %s%s, but the input%s is %s"
              .formatted(
                  source.tensor(),
                  source.whole(),
                  part.sizes().equals(source.whole().sizes())
                      ? ""
                      : ", and the part of rank %s is %s".formatted(rank, shape(part)),
                  input.name().equals(source.tensor()) ? "" : " '%s'".formatted(input.name()),
                  type),
          type.dtype() != part.dtype()
              ? "capture the model with the checkpoint's element type, or convert the checkpoint"
              : "take the checkpoint of the captured model; weights.json says how ranks divide it");
    }
  }

  private static String shape(TensorType part) {
    return TensorType.contiguous(part.dtype(), part.sizes()).toString();
  }

  /** Gives all inputs of this process that have a tensor here theirs, as {@link #fill} does one. */
  public void fill(Session session, Plan plan) {
    for (int rank : session.localRanks()) {
      for (int i = 0; i < session.inputNames(rank).size(); i++) {
        var _ = fill(session, plan, rank, i);
      }
    }
  }

  /**
   * Gives an input its tensor: without a copy where the plan leaves the input with the caller and
   * writes nothing into it, so that ranks that get the same tensor read the same memory.
   *
   * @return whether there is a tensor for it
   */
  public boolean fill(Session session, Plan plan, int rank, int index) {
    var tensor = tensor(session.inputNames(rank).get(index), rank);
    if (tensor.isEmpty()) {
      return false;
    }
    var type = plan.forRank(rank).graph().inputs().get(index).tensor();
    boolean shared =
        session.isExternalInput(rank, index)
            && !session.mayWriteInput(rank, index)
            && type.strides().equals(tensor.get().type().strides());
    if (shared) {
      session.bindInput(rank, index, tensor.get().as(type));
    } else {
      session.input(rank, index).orElseThrow().copyFrom(tensor.get());
    }
    return true;
  }

  private static CompileException wrong(Path file, String message, String hint) {
    return CompileException.ofFile(DiagnosticCode.BAD_TENSORS, file, message, hint);
  }
}
