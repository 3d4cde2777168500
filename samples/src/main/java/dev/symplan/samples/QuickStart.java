package dev.symplan.samples;

import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.report.PlanReport;
import dev.symplan.planner.report.render.TextRenderer;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.host.HostBackend;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.SeededInputs;
import java.nio.file.Path;

/** Compiles a graph, shows the plan, fills the inputs of all ranks, runs, and reads an output. */
public final class QuickStart {
  private QuickStart() {}

  /** {@return the first element of rank 0's first output} */
  static double run(Path graph) {
    Plan plan = Compiler.forTarget(Target.H200_X4).compile(graph);
    System.out.println(TextRenderer.render(PlanReport.of(plan)));

    try (Session session = Session.open(plan, new HostBackend())) {
      for (int rank = 0; rank < session.ranks(); rank++) {
        for (int i = 0; i < session.inputNames().size(); i++) {
          HostTensor input = session.input(rank, i).orElseThrow();
          SeededInputs.fill(input, 0, rank, session.inputNames().get(i));
        }
      }
      session.run();
      return session.output(0, 0).orElseThrow().get(0, 0);
    }
  }

  public static void main(String[] args) {
    System.out.println(
        "o[0, 0] = " + run(Path.of(args.length > 0 ? args[0] : "samples/tp_mlp.graph")));
  }
}
