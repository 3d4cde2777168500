package dev.symplan.cli;

import dev.symplan.ir.Parallel;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Case;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.Weights;
import dev.symplan.runtime.check.Reference;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.InputNeeds;
import dev.symplan.runtime.tensor.SeededInputs;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Optional;
import java.util.function.Supplier;

/**
 * Inputs of a run, of a case or else made up from a seed, but for weights: the same for a rank in
 * whatever process.
 */
record RunInputs(Plan plan, Session session, Optional<Case> data, Weights weights, long seed)
    implements Reference.Inputs {

  /** {@return where they are from, but for weights; for people} */
  String origin() {
    return data.isPresent() ? "the case's inputs" : "inputs from seed " + seed;
  }

  /**
   * Fills the inputs of the ranks of this process.
   *
   * @throws CompileException when ranks of this process get different values of an input that the
   *     plan relies on to be the same on all ranks
   */
  void fill() {
    if (data.isPresent()) {
      data.get().fillInputs(session, plan, weights);
    } else {
      makeUp();
    }
    plan.replicated().forEach(this::checkReplicated);
  }

  private void checkReplicated(String name) {
    int first = -1;
    Optional<HostTensor> same = Optional.empty();
    for (int rank : session.localRanks()) {
      int index = session.inputNames(rank).indexOf(name);
      var tensor = index < 0 ? Optional.<HostTensor>empty() : session.input(rank, index);
      if (same.isEmpty()) {
        same = tensor;
        first = rank;
      } else if (tensor.isPresent() && !isSame(tensor.get(), same.get())) {
        throw CompileException.ofFile(
            DiagnosticCode.BAD_TENSORS,
            data.map(Case::folder).orElseGet(() -> Path.of(plan.name())),
            "input '%s' differs between ranks %s and %s".formatted(name, first, rank),
            "the plan was made with --replicated %s; plan without that".formatted(name));
      }
    }
  }

  private static boolean isSame(HostTensor a, HostTensor b) {
    return a.contiguous().memory().mismatch(b.contiguous().memory()) < 0;
  }

  /** On all cores: models have gigabytes of weights. */
  private void makeUp() {
    var work = new ArrayList<Supplier<HostTensor>>();
    for (int rank : session.localRanks()) {
      for (int i = 0; i < session.inputNames(rank).size(); i++) {
        if (!weights.fill(session, plan, rank, i)) {
          int index = i;
          session.input(rank, i).ifPresent(tensor -> work.add(madeUp(tensor, rank, index)));
        }
      }
    }
    Parallel.all(work);
  }

  /** {@return work that fills a tensor} */
  private Supplier<HostTensor> madeUp(HostTensor tensor, int rank, int index) {
    var graph = plan.forRank(rank).graph();
    var name = session.inputNames(rank).get(index);
    int like = plan.replicated().contains(name) ? 0 : rank;
    var need = InputNeeds.of(graph, graph.inputs().get(index));
    return () -> {
      SeededInputs.fill(tensor, seed, like, name, need);
      return tensor;
    };
  }

  /**
   * {@return a made-up input or weights: what the session has, or the same for the rank of another
   * process}
   */
  @Override
  public Optional<HostTensor> input(int rank, int index) {
    if (session.localRanks().contains(rank)) {
      return session.input(rank, index);
    }
    var input = plan.forRank(rank).graph().inputs().get(index);
    if (!input.isTensor()) {
      return Optional.empty();
    }
    var tensor = HostTensor.allocate(input.tensor());
    var given = weights.tensor(session.inputNames(rank).get(index), rank);
    given.ifPresent(tensor::copyFrom);
    return Optional.of(given.isPresent() ? tensor : madeUp(tensor, rank, index).get());
  }
}
