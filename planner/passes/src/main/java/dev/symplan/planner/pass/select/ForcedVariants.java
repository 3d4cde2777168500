package dev.symplan.planner.pass.select;

import static com.google.common.collect.ImmutableSet.toImmutableSet;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.pass.GraphState;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.analysis.Collective;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The variants that the caller forces, by the name or the kind of collectives; a name is stronger.
 *
 * <p>Ranks whose graphs differ may name one collective differently, and each of its names will do.
 * A name that is another collective's on other ranks means the one of the first ranks.
 */
public final class ForcedVariants {
  private final ImmutableList<Analyses> graphs;
  private final ImmutableMap<String, Variant> options;

  /**
   * A variant that a collective must have.
   *
   * @param byName whether the caller named this collective, not its kind
   */
  record Forced(Variant variant, boolean byName) {}

  public ForcedVariants(GraphState state, PassContext context) {
    this.graphs = state.analyses();
    this.options = context.options().variants();
  }

  /**
   * {@return the variant that the caller forces for the {@code k}-th collective}
   *
   * @throws CompileException when two of its names have different variants
   */
  Optional<Forced> of(int k) {
    @Nullable String name = null;
    for (var graph : graphs) {
      var own = graph.collectives().get(k).name();
      @Nullable Variant wanted = options.get(own);
      if (wanted == null || !isThe(k, own)) {
        continue;
      }
      if (name != null && options.get(name) != wanted) {
        throw new CompileException(
            Diagnostic.error(
                DiagnosticCode.BAD_OPTION,
                graph.collectives().get(k).op().span(),
                "'%s' and '%s' are one collective, on different ranks, and cannot have two variants"
                    .formatted(name, own),
                "name one of them"));
      }
      name = name == null ? own : name;
    }
    if (name != null) {
      return Optional.ofNullable(options.get(name)).map(variant -> new Forced(variant, true));
    }
    var kind = graphs.getFirst().collectives().get(k).kind().text();
    return Optional.ofNullable(options.get(kind)).map(variant -> new Forced(variant, false));
  }

  /** Whether the first graph that has a collective of this name means the {@code k}-th by it. */
  private boolean isThe(int k, String name) {
    return graphs.stream()
        .map(graph -> graph.collectives().stream().map(Collective::name).toList().indexOf(name))
        .filter(index -> index >= 0)
        .findFirst()
        .equals(Optional.of(k));
  }

  /** {@return the caller's words that are neither the name nor the kind of any collective} */
  public ImmutableSet<String> unknown() {
    var known =
        graphs.stream()
            .flatMap(graph -> graph.collectives().stream())
            .<String>mapMulti(
                (collective, words) -> {
                  words.accept(collective.name());
                  words.accept(collective.kind().text());
                })
            .collect(toImmutableSet());
    return options.keySet().stream()
        .filter(word -> !known.contains(word))
        .collect(toImmutableSet());
  }
}
