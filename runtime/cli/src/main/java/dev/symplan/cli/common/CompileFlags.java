package dev.symplan.cli.common;

import com.google.common.base.Ascii;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.diag.Units;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.BackendVariants;
import dev.symplan.planner.machine.Hosts;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Topology;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.Objective;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Backend;
import dev.symplan.runtime.doctor.Diagnosis;
import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.stream.Stream;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** The options that say how to compile. */
@Heading("Planning")
public final class CompileFlags {
  /** The classes with options about a plan that is yet to be made. */
  private static final ImmutableSet<Class<?>> OWN =
      ImmutableSet.of(CompileFlags.class, RewriteFlags.class, HostsFlag.class, ProgramFlags.class);

  @Spec(Spec.Target.MIXEE)
  private CommandSpec spec;

  @Option(
      names = "--target",
      paramLabel = "NAME|FILE",
      description =
          "The machine to plan for: ${COMPLETION-CANDIDATES}, or a target file as written by"
              + " calibrate (default: as many H200s as ranks).",
      completionCandidates = TargetNames.class)
  private Optional<String> target = Optional.empty();

  @Mixin private HostsFlag hosts;
  @Mixin private RewriteFlags rewrites;

  @Option(
      names = "--graph",
      paramLabel = "NAME",
      description = "The graph to compile, if the file has several.",
      defaultValue = "")
  private String graph;

  @Option(
      names = "--variant",
      paramLabel = "OP=NAME",
      description = {
        "Force a variant for a kind of collective (all_reduce=two_shot), or for one collective by"
            + " its name in a dump. May be repeated."
      })
  private Map<String, String> variants = new LinkedHashMap<>();

  @Option(
      names = "--free-variants",
      description =
          "Choose the fastest variant also for collectives whose op names an algorithm, such as"
              + " symm_mem::two_shot_all_reduce_.")
  private boolean freeVariants;

  @Option(
      names = "--multicast",
      paramLabel = "on|off",
      description = {
        "Whether collectives may use NVLink multicast (multimem), if the target has it: off (the"
            + " default) or on. On backend cuda, such a plan runs only if run has this option,"
            + " too. Symplan's use of it has not run on hardware yet."
      },
      defaultValue = "off")
  private OptionValues.Switch multicast;

  @Option(
      names = "--inputs",
      paramLabel = "WHERE",
      description = {
        "Where inputs live: auto (in the symmetric arena if a collective uses them, otherwise with"
            + " the caller; the default), external, symm or local."
      },
      defaultValue = "auto")
  private String inputs;

  @Option(
      names = "--results",
      paramLabel = "WHERE",
      description =
          "Where graph outputs live: auto (planned; the default), external, symm or local.",
      defaultValue = "auto")
  private String results;

  @Option(
      names = "--place",
      paramLabel = "NAME=WHERE",
      description = "Where one input or output lives: external, symm or local. May be repeated.")
  private Map<String, String> places = new LinkedHashMap<>();

  @Option(
      names = "--donate",
      paramLabel = "NAME",
      description = {
        "Plan this input, and let other values reuse its memory after its last use. May be"
            + " repeated."
      })
  private List<String> donated = new ArrayList<>();

  @Option(
      names = "--replicated",
      paramLabel = "NAME",
      split = ",",
      description = {
        "Inputs that are the same on all ranks whenever the graph runs, such as the weights of a"
            + " norm. You vouch for it; --sequence-parallel relies on it. May be repeated."
      })
  private List<String> replicated = new ArrayList<>();

  @Option(
      names = "--optimize",
      paramLabel = "FOR",
      description = {
        "What matters when less time costs memory: time (the fastest plan), memory (the lowest"
            + " peak) or balanced (the default: takes more memory than the graph in its own order"
            + " without overlap only for a gain of 3 %%)."
      },
      defaultValue = "balanced")
  private String objective;

  @Option(
      names = "--memory-limit",
      paramLabel = "SIZE",
      description = {
        "How much memory a rank has for its arenas, inputs and outputs, for example 24GiB."
            + " Where the plan would take more, tensors are computed again, or wait in the host's"
            + " memory."
      })
  private Optional<String> memoryLimit = Optional.empty();

  @Option(
      names = "--prefetch",
      paramLabel = "N",
      description = {
        "How many collectives may be in flight ahead: started before their place in the graph"
            + " (default: as many as their predicted time and memory suggest)."
      })
  private Optional<Integer> prefetch = Optional.empty();

  @Option(names = "--no-overlap", description = "Run every collective alone, never beside compute.")
  private boolean noOverlap;

  @Option(
      names = "--no-fusion",
      description = "Run every op as a separate kernel; each of its results takes memory.")
  private boolean noFusion;

  @Option(
      names = "--no-epilogues",
      description =
          "Run no ops in the kernel of the collective before them: each has kernels of its own.")
  private boolean noEpilogues;

  @Option(
      names = "--no-fold-constants",
      description =
          "Compute everything in each run, including tensors that depend on no input, such as"
              + " masks. Otherwise, a session computes these once, before its first run.")
  private boolean noFoldConstants;

  @Option(
      names = "--fold-weights",
      paramLabel = "NAME",
      split = ",",
      description = {
        "Inputs that stay the same from run to run; * in a name stands for any characters. A"
            + " session computes tensors that depend only on them, such as weights in another type,"
            + " once, before its first run. May be repeated."
      })
  private List<String> foldedWeights = new ArrayList<>();

  @Option(
      names = "--no-reorder",
      description = "Keep the order of the ops, even if another order needs less memory.")
  private boolean noReorder;

  @Option(
      names = "--reorder-budget",
      paramLabel = "PERCENT",
      description = {
        "How much longer the predicted run of a balanced plan may take for an order of the ops that"
            + " needs less memory (default: 1)."
      },
      defaultValue = "1")
  private double reorderBudget;

  @Option(
      names = "--across-graphs",
      description = {
        "Let ops and collectives move from one graph of a --together program into another. The plan"
            + " can then only run as a whole."
      })
  private boolean acrossGraphs;

  @Mixin private ProgramFlags program;

  private BackendVariants backend = BackendVariants.ANY;

  /** Whether the plan is run, for which some options hold as well. */
  private boolean runs;

  private boolean simulates;

  private Optional<Target> here = Optional.empty();

  /**
   * Refuses options for a plan, which is compiled already.
   *
   * @throws ParameterException when there is one
   */
  public void requireNone(Path plan) {
    spec.commandLine().getParseResult().matchedOptions().stream()
        .filter(
            option ->
                option.userObject() instanceof Field field
                    && OWN.contains(field.getDeclaringClass())
                    && !(runs && option.longestName().equals("--multicast"))
                    && !(simulates && option.longestName().equals("--hosts")))
        .findFirst()
        .ifPresent(
            option -> {
              throw usage(
                  "%s: %s is a plan; name the graph that it was compiled from, to plan it differently"
                      .formatted(option.longestName(), plan));
            });
  }

  /** {@return these options, for plans that a backend carries out} */
  public CompileFlags forBackend(Backend device) {
    backend = device.variants(multicast());
    return this;
  }

  /** {@return these options, for a plan that may be there already, and run on other hosts} */
  public CompileFlags toSimulate() {
    simulates = true;
    return this;
  }

  /**
   * {@return these options for hosts on which processes were started; empty if the options name
   * hosts, or if these have more ranks than a host of the target}
   */
  public Optional<CompileFlags> onHosts(Hosts started, Target machine) {
    return hosts.start(started, machine) ? Optional.of(this) : Optional.empty();
  }

  /** {@return the hosts that a plan runs on: those that are given, or its own} */
  public Topology topology(Plan plan) {
    return hosts.topology(spec, plan);
  }

  /** {@return these options, for a plan that a backend runs then, which may be there already} */
  public CompileFlags toRunOn(Backend device) {
    runs = true;
    return forBackend(device);
  }

  /** {@return whether collectives may use NVLink multicast} */
  public boolean multicast() {
    return multicast.isOn();
  }

  /**
   * {@return these options, for plans that this machine's GPUs carry out} They are planned for the
   * machine, unless another target is given.
   */
  public CompileFlags forMachine(Diagnosis machine) {
    int gpus = machine.machine().gpus().size();
    backend = machine.usable(backend, program.ranks().orElse(gpus));
    here = machine.target();
    return this;
  }

  /** {@return the files that the options name} */
  public List<Path> read() {
    var file = target.filter(name -> Target.ofName(name).isEmpty()).map(Path::of);
    return Stream.concat(file.stream(), program.declarations().stream()).toList();
  }

  /** {@return the symbolic sizes that were given as a range, with it} */
  public ImmutableMap<String, SizeRange> ranges() {
    return program.ranges();
  }

  /** {@return a compiler as the options say} */
  public Compiler compiler() {
    return target
        .map(name -> target(name, "--target", spec))
        .or(() -> here)
        .map(Compiler::forTarget)
        .orElseGet(Compiler::forDefaultTarget)
        .with(options());
  }

  /** {@return the built-in target called so, or the one in the file} */
  public static Target target(String name, String option, CommandSpec spec) {
    var builtIn = Target.ofName(name);
    if (builtIn.isPresent()) {
      return builtIn.get();
    }
    if (name.isEmpty() || !Files.exists(Path.of(name))) {
      throw new ParameterException(
          spec.commandLine(),
          "%s: '%s' is neither a target nor a file; targets are %s"
              .formatted(option, name, String.join(", ", Target.names())));
    }
    return Target.read(Path.of(name));
  }

  private CompileOptions options() {
    if (!(reorderBudget >= 0)) {
      throw usage("--reorder-budget must be at least 0");
    }
    if (prefetch.filter(depth -> depth < 0).isPresent()) {
      throw usage("--prefetch must be at least 0");
    }
    var forced = ImmutableMap.<String, Variant>builder();
    variants.forEach(
        (op, name) ->
            forced.put(
                op,
                Variant.ofText(Ascii.toLowerCase(name))
                    .orElseThrow(
                        () ->
                            usage(
                                "--variant %s=%s: unknown variant '%s'"
                                    .formatted(op, name, name)))));
    var spaces = ImmutableMap.<String, MemorySpace>builder();
    places.forEach((name, where) -> spaces.put(name, space("--place " + name, where)));
    for (var name : donated) {
      if (places.containsKey(name)) {
        throw usage(
            "--donate %1$s and --place %1$s=%2$s exclude each other"
                .formatted(name, places.get(name)));
      }
      spaces.put(name, MemorySpace.DONATED);
    }
    var options =
        program
            .options(spec)
            .withGraph(graph)
            .withVariants(forced.buildOrThrow())
            .withFreeVariants(freeVariants)
            .withBackend(backend)
            .withMulticast(multicast())
            .withInputs(space("--inputs", inputs))
            .withOutputs(space("--results", results))
            .withSpaces(spaces.buildKeepingLast())
            .withObjective(objective())
            .withOverlap(!noOverlap)
            .withPrefetch(prefetch.map(OptionalInt::of).orElseGet(OptionalInt::empty))
            .withFusion(!noFusion)
            .withEpilogues(!noEpilogues)
            .withFoldConstants(!noFoldConstants)
            .withFoldWeights(ImmutableSet.copyOf(foldedWeights))
            .withRewrites(rewrites.options(spec))
            .withReplicated(ImmutableSet.copyOf(replicated))
            .withMemoryLimit(memoryLimit.map(this::bytes).orElseGet(OptionalLong::empty))
            .withAcrossGraphs(acrossGraphs)
            .withReorderBudget(
                noReorder ? OptionalDouble.empty() : OptionalDouble.of(reorderBudget / 100));
    return hosts.placement(spec).map(options::withHosts).orElse(options);
  }

  private OptionalLong bytes(String text) {
    var bytes = Units.parseBytes(text);
    if (bytes.isEmpty()) {
      throw usage(
          "--memory-limit: '%s' is not a size such as 24GiB, 512MiB or 1000000".formatted(text));
    }
    return bytes;
  }

  private MemorySpace space(String option, String text) {
    if (Ascii.equalsIgnoreCase(text, "auto")) {
      return MemorySpace.ANY;
    }
    return MemorySpace.ofKeyword(Ascii.toLowerCase(text))
        .filter(space -> space != MemorySpace.DONATED && space != MemorySpace.HOST)
        .orElseThrow(
            () -> usage("%s: '%s' is not one of external, symm, local".formatted(option, text)));
  }

  private Objective objective() {
    return Objective.ofText(Ascii.toLowerCase(objective))
        .orElseThrow(
            () ->
                usage(
                    "--optimize: '%s' is not one of time, balanced, memory".formatted(objective)));
  }

  private ParameterException usage(String message) {
    return new ParameterException(spec.commandLine(), message);
  }

  /** For completion and help. */
  static final class TargetNames implements Iterable<String> {
    @Override
    public Iterator<String> iterator() {
      return Target.names().iterator();
    }
  }
}
