package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.SeededInputs;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Ranks of several hosts, in collectives of every kind within each host, between ranks of the same
 * number on all hosts, and between all.
 *
 * @param hosts how many there are
 * @param local how many ranks each has
 */
record MeshProgram(int hosts, int local) {
  int ranks() {
    return hosts * local;
  }

  /** {@return the name by which the host of a rank is known} */
  String host(int rank) {
    return "host" + rank / local;
  }

  private String groups(int count, int size, int begin, int step) {
    return IntStream.range(0, count)
        .mapToObj(
            part ->
                IntStream.range(0, size)
                    .map(i -> part * begin + i * step)
                    .boxed()
                    .toList()
                    .toString())
        .collect(Collectors.joining(", "));
  }

  private String text() {
    var rows = IntStream.range(0, ranks()).mapToObj(_ -> "3").collect(Collectors.joining(", "));
    var across = IntStream.range(0, hosts).mapToObj(_ -> "5").collect(Collectors.joining(", "));
    return """
    graph version 1
    group within = %s
    group across = %s
    group world = %s
    graph mesh(x: f32[%s, 8], y: i64[%s]) {
      a = _c10d_functional::all_reduce(x, "sum", "within")
      aw = _c10d_functional::wait_tensor(a)
      b = _c10d_functional::all_gather_into_tensor(aw, %s, "across")
      bw = _c10d_functional::wait_tensor(b)
      c = _c10d_functional::reduce_scatter_tensor(bw, "sum", %s, "world")
      cw = _c10d_functional::wait_tensor(c)
      d = _c10d_functional::all_to_all_single(x, [%s], [%s], "world")
      dw = _c10d_functional::wait_tensor(d)
      e = _c10d_functional::all_to_all_single(y, [%s], [%s], "across")
      ew = _c10d_functional::wait_tensor(e)
      f = _c10d_functional::all_reduce(cw, "max", "across")
      fw = _c10d_functional::wait_tensor(f)
      g = _c10d_functional::all_gather_into_tensor(dw, %s, "within")
      gw = _c10d_functional::wait_tensor(g)
      return aw, cw, dw, ew, fw, gw
    }
    """
        .formatted(
            groups(hosts, local, local, 1),
            groups(local, hosts, 1, local),
            groups(1, ranks(), 0, 1),
            3 * ranks(),
            5 * hosts,
            hosts,
            ranks(),
            rows,
            rows,
            across,
            across,
            local);
  }

  /** {@return a plan for these hosts} */
  Plan plan(ImmutableMap<String, Variant> variants) {
    return Compiler.forTarget(target())
        .with(CompileOptions.DEFAULT.withVariants(variants))
        .compile(GraphParser.parse(new SourceFile("mesh.graph", text())));
  }

  private Target target() {
    try {
      var file = Files.createTempFile("hosts", ".json");
      try {
        Files.writeString(
            file,
            """
            {"format": "symplan-target", "version": 1, "name": "hosts", "base": "h200x4",
             "gpus": %s}
            """
                .formatted(local));
        return Target.read(file);
      } finally {
        Files.delete(file);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** {@return the outputs of a rank after a run with generated inputs} */
  static List<HostTensor> run(Session session, int rank, long seed) {
    fill(session, rank, seed);
    session.run();
    return outputs(session, rank);
  }

  static void fill(Session session, int rank, long seed) {
    for (int i = 0; i < session.inputNames(rank).size(); i++) {
      SeededInputs.fill(
          session.input(rank, i).orElseThrow(), seed, rank, session.inputNames(rank).get(i));
    }
  }

  static List<HostTensor> outputs(Session session, int rank) {
    return IntStream.range(0, session.outputCount(rank))
        .mapToObj(i -> Programs.copy(session.output(rank, i).orElseThrow()))
        .toList();
  }

  /** {@return the outputs of all ranks where these are threads of one process} */
  static List<List<HostTensor>> inOneProcess(Plan plan, long seed) {
    try (var session = Session.open(plan, new HostBackend())) {
      session.localRanks().forEach(rank -> fill(session, rank, seed));
      session.run();
      return session.localRanks().stream().map(rank -> outputs(session, rank)).toList();
    }
  }

  static boolean same(List<HostTensor> a, List<HostTensor> b) {
    return a.size() == b.size()
        && IntStream.range(0, a.size()).allMatch(i -> Programs.same(a.get(i), b.get(i)));
  }
}
