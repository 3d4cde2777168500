package dev.symplan.planner.simulate;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Value;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.cost.CostModel;
import dev.symplan.planner.cost.CostModel.Crossing;
import dev.symplan.planner.plan.Step;
import dev.symplan.planner.plan.StreamKind;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.ToDoubleFunction;

/**
 * Carries out the steps of all ranks at predicted times, as {@link
 * dev.symplan.planner.cost.Timeline} does for one: compute runs step by step, a stream runs one
 * collective at a time. In addition, a collective begins when the last of its ranks has come to it,
 * and collectives that are on a rail at the same time have equal shares of it, but no more than
 * each has alone. One that is slowed down on one rail waits on the others.
 *
 * <p>One player stands for all ranks of a kind.
 */
final class Simulation {

  private record Event(double time, long order, Runnable action) {}

  private record Issued(int collective, double time) {}

  /** The n-th collective in which ranks of these kinds meet. */
  private record Meeting(ImmutableIntArray kinds, int number) {}

  /** Which collective of its plan one is on a player. */
  private record Position(Player player, int collective) {}

  /** A collective of a rank plan. */
  private record Row(int rankPlan, int collective) {}

  /** A time in which a rank does no local work: it is in a collective, or waits for one. */
  private record Wait(double begin, double end) {}

  /** The ranks of a kind. */
  private final class Player {
    final int kind;
    final int rank;
    final List<Step> steps;
    final double[] micros;
    final Flow[] flows;
    final Map<StreamKind, Deque<Issued>> queues = new EnumMap<>(StreamKind.class);
    final Map<StreamKind, Double> free = new EnumMap<>(StreamKind.class);
    final List<Wait> waits = new ArrayList<>();
    final Map<Value, Double> copies = new HashMap<>();
    double copied;
    double compute;
    double now;
    double busy;
    double shared;
    int next;

    /** The collective without which it cannot go on; -1 for none. */
    int awaited = -1;

    Player(int kind) {
      this.kind = kind;
      this.rank = kinds.ranks().get(kind);
      this.steps = job.plan().forRank(rank).steps();
      this.micros =
          job.compute().get(job.plan().planOfRank().get(rank)).stream()
              .map(alone -> alone / scenario.compute(rank))
              .toArray();
      this.flows = new Flow[job.plan().forRank(rank).collectives().size()];
    }

    void work() {
      now += micros[next];
      compute += micros[next];
    }

    /** Copies of the host's memory run one after the other, beside compute until it waits. */
    void local(int index) {
      var op = job.plan().forRank(rank).graph().ops().get(index);
      if (op.def().has(OpTrait.HOST_COPY)) {
        copied = Math.max(now, copied) + costs.hostCopyMicros(op.result().tensor());
        copies.put(op.result(), copied);
      } else if (op.def().has(OpTrait.HOST_COPY_END)) {
        double end = copies.getOrDefault(op.operands().getLast(), now);
        waitUntil(Math.max(now, end) + costs.forkJoinMicros());
      } else {
        work();
      }
    }

    Deque<Issued> queue(StreamKind stream) {
      return queues.computeIfAbsent(stream, _ -> new ArrayDeque<>());
    }

    void waitUntil(double time) {
      waits.add(new Wait(now, time));
      now = time;
    }

    /** {@return how much local work it has done since a time} */
    double workSince(double begin) {
      double idle = 0;
      for (var wait : waits) {
        idle += Math.max(0, wait.end() - Math.max(begin, wait.begin()));
      }
      return Math.max(0, now - begin - idle);
    }

    StreamKind stream(int k) {
      return job.plan().forRank(rank).collectives().get(k).stream();
    }
  }

  private final Job job;
  private final Scenario scenario;
  private final CostModel costs;
  private final RankKinds kinds;
  private final List<Flow> flows = new ArrayList<>();
  private final List<Player> players = new ArrayList<>();
  private final PriorityQueue<Event> events =
      new PriorityQueue<>(Comparator.comparingDouble(Event::time).thenComparingLong(Event::order));

  /** Those that are on rails now. */
  private final Set<Flow> sending = new LinkedHashSet<>();

  private double clock;

  /** When their shares changed last. */
  private double lastShared;

  private long order;

  private Simulation(Scenario scenario) {
    this.job = scenario.job();
    this.scenario = scenario;
    this.costs = new CostModel(job.plan().target());
    this.kinds = RankKinds.of(scenario);
    for (int kind = 0; kind < kinds.count(); kind++) {
      players.add(new Player(kind));
    }
  }

  /** {@return the predicted step} */
  static SimulatedStep run(Scenario scenario) {
    var simulation = new Simulation(scenario);
    simulation.meet();
    simulation.play();
    return simulation.result();
  }

  /** Those who meet in a collective share its flow; the one that sends most decides its time. */
  private void meet() {
    var meetings = new LinkedHashMap<Meeting, List<Position>>();
    for (var player : players) {
      var before = new HashMap<ImmutableIntArray, Integer>();
      for (int k = 0; k < player.flows.length; k++) {
        var met = kinds.met(job.group(player.rank, k), player.rank);
        int number = before.getOrDefault(met, 0);
        before.put(met, number + 1);
        var meeting = new Meeting(met, number);
        meetings.computeIfAbsent(meeting, _ -> new ArrayList<>()).add(new Position(player, k));
      }
    }
    for (var met : meetings.values()) {
      var most =
          met.stream()
              .map(at -> job.transfer(at.player().rank, at.collective()))
              .max(Comparator.comparingDouble(Crossing::micros))
              .orElseThrow();
      var flow =
          new Flow(
              met.stream()
                  .collect(
                      ImmutableMap.toImmutableMap(at -> at.player().kind, Position::collective)),
              most);
      flows.add(flow);
      met.forEach(at -> at.player().flows[at.collective()] = flow);
    }
  }

  private void play() {
    players.forEach(player -> at(0, () -> advance(player)));
    while (!events.isEmpty()) {
      var event = events.remove();
      clock = event.time();
      event.action().run();
    }
    players.stream()
        .filter(player -> player.next < player.steps.size())
        .findFirst()
        .ifPresent(
            player -> {
              throw new IllegalStateException(
                  "rank %s waits at step %s".formatted(player.rank, player.next));
            });
  }

  private void at(double time, Runnable action) {
    events.add(new Event(time, order++, action));
  }

  /** Runs a player until it must wait; its time may be ahead of the clock. */
  private void advance(Player player) {
    while (player.next < player.steps.size()) {
      var step = player.steps.get(player.next);
      switch (step) {
        case Step.Compute(int op) -> player.local(op);
        case Step.Fused _ -> player.work();
        case Step.Start(int k) -> {
          issue(player, k);
          if (player.stream(k) == StreamKind.COMPUTE) {
            player.awaited = k;
            return;
          }
        }
        case Step.Join(int k) -> {
          if (!player.flows[k].isDone()) {
            player.awaited = k;
            return;
          }
          join(player, k);
        }
      }
      player.next++;
    }
  }

  private void issue(Player player, int k) {
    var stream = player.stream(k);
    var queue = player.queue(stream);
    queue.add(new Issued(k, player.now));
    if (queue.size() == 1) {
      come(player, stream);
    }
  }

  /** Lets the first collective in a stream begin as soon as it is issued and the stream is free. */
  private void come(Player player, StreamKind stream) {
    var issued = player.queue(stream).element();
    double time = Math.max(issued.time(), player.free.getOrDefault(stream, 0.0));
    at(time, () -> arrive(player.flows[issued.collective()]));
  }

  private void arrive(Flow flow) {
    flow.firstArrival = Math.min(flow.firstArrival, clock);
    flow.arrived++;
    if (flow.arrived < flow.players.length()) {
      return;
    }
    flow.begin = clock;
    if (flow.crosses()) {
      at(clock + flow.crossing.fixed(), () -> send(flow));
    } else {
      at(clock + flow.crossing.micros(), () -> finish(flow));
    }
  }

  private void send(Flow flow) {
    progress();
    sending.add(flow);
    share();
  }

  /** Gives all that send their shares of the rails, from now on. */
  private void share() {
    var users = users();
    for (var flow : sending) {
      flow.rate = flow.crossing.share() < 1 ? 1 : Double.POSITIVE_INFINITY;
      for (int kind : flow.players.asList()) {
        double rail = scenario.rail(players.get(kind).rank);
        flow.rate = Math.min(flow.rate, rail / (users[kind] * flow.crossing.share()));
      }
      int version = ++flow.version;
      at(clock + flow.left / flow.rate, () -> sent(flow, version));
    }
    lastShared = clock;
  }

  private void sent(Flow flow, int version) {
    if (flow.version != version) {
      return;
    }
    progress();
    sending.remove(flow);
    share();
    double end = Math.max(clock, flow.begin + flow.crossing.within()) + flow.crossing.latency();
    at(end, () -> finish(flow));
  }

  /** Takes off what was sent since shares changed last. */
  private void progress() {
    double micros = clock - lastShared;
    var users = users();
    for (var flow : sending) {
      flow.left = Math.max(0, flow.left - micros * flow.rate);
      if (flow.players.stream().anyMatch(kind -> users[kind] > 1)) {
        flow.shared += micros;
      }
    }
    for (var player : players) {
      player.busy += users[player.kind] > 0 ? micros : 0;
      player.shared += users[player.kind] > 1 ? micros : 0;
    }
    lastShared = clock;
  }

  /** {@return by kind, how many collectives are on a rail} */
  private int[] users() {
    var users = new int[players.size()];
    sending.forEach(flow -> flow.players.forEach(kind -> users[kind]++));
    return users;
  }

  private void finish(Flow flow) {
    flow.end = clock;
    for (int kind : flow.players.asList()) {
      var player = players.get(kind);
      int k = flow.of(kind);
      var stream = player.stream(k);
      player.queue(stream).remove();
      player.free.put(stream, clock);
      if (!player.queue(stream).isEmpty()) {
        come(player, stream);
      }
      if (player.awaited == k) {
        player.awaited = -1;
        if (stream == StreamKind.COMPUTE) {
          player.waitUntil(clock);
        } else {
          join(player, k);
        }
        player.next++;
        advance(player);
      }
    }
  }

  private void join(Player player, int k) {
    var flow = player.flows[k];
    var variant = job.plan().forRank(player.rank).collectives().get(k).variant();
    double beside = player.workSince(flow.begin);
    double end = flow.begin + beside + costs.exposedMicros(variant, flow.micros(), beside);
    player.waitUntil(Math.max(player.now, end) + costs.forkJoinMicros());
  }

  private SimulatedStep result() {
    var last = players.stream().max(Comparator.comparingDouble(player -> player.now)).orElseThrow();
    var collectives = ImmutableList.<SimulatedStep.Collective>builder();
    rows()
        .forEach(
            (row, own) ->
                collectives.add(
                    new SimulatedStep.Collective(
                        row.rankPlan(),
                        row.collective(),
                        most(own, flow -> flow.crossing.micros()),
                        most(own, Flow::micros),
                        most(own, Flow::waited),
                        most(own, flow -> flow.shared))));
    return new SimulatedStep(
        last.now,
        last.rank,
        last.compute,
        collectives.build(),
        players.stream()
            .map(
                player ->
                    new SimulatedStep.Gpu(
                        player.rank,
                        kinds.size(player.kind),
                        player.compute,
                        player.busy,
                        player.shared))
            .collect(ImmutableList.toImmutableList()));
  }

  /** The flows of each collective, by where it is in the first rank plan that has it. */
  private Map<Row, List<Flow>> rows() {
    var rows =
        new TreeMap<Row, List<Flow>>(
            Comparator.comparingInt(Row::rankPlan).thenComparingInt(Row::collective));
    for (var flow : flows) {
      var first =
          flow.players.stream()
              .mapToObj(
                  kind ->
                      new Row(job.plan().planOfRank().get(players.get(kind).rank), flow.of(kind)))
              .min(Comparator.comparingInt(Row::rankPlan))
              .orElseThrow();
      rows.computeIfAbsent(first, _ -> new ArrayList<>()).add(flow);
    }
    return rows;
  }

  private static double most(List<Flow> flows, ToDoubleFunction<Flow> time) {
    return flows.stream().mapToDouble(time).max().orElse(0);
  }
}
