package dev.symplan.runtime.torch;

import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.json.Json;
import dev.symplan.ir.json.JsonErrors;
import dev.symplan.runtime.launch.LaunchEnvironment;
import dev.symplan.runtime.launch.LaunchEnvironment.Launcher;
import dev.symplan.runtime.launch.Secret;
import dev.symplan.runtime.launch.StoreAccess;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;

/**
 * A request to compile a graph.
 *
 * @param graph the part of this process's rank
 * @param device which of the GPUs that the process sees has the tensors
 * @param page where the page of the plan goes, if anywhere
 * @param peers the processes of the other ranks; empty for a graph of one rank
 */
record Request(RankGraph graph, int device, Optional<Path> page, Optional<Peers> peers) {

  private static final ImmutableSet<String> FIELDS =
      ImmutableSet.<String>builder()
          .addAll(RankGraph.FIELDS)
          .add("device", "page", "world")
          .build();

  private static final ImmutableSet<String> WORLD =
      ImmutableSet.of("rank", "size", "host", "port", "secret", "timeout");

  /**
   * The processes that run the ranks of a graph.
   *
   * @param environment where they meet
   * @param timeout how long they wait for each other
   */
  record Peers(LaunchEnvironment environment, Duration timeout) {

    private static Peers parse(Json json) {
      json.only(WORLD);
      var environment =
          new LaunchEnvironment(
              Launcher.TORCHRUN,
              json.get("rank").intValue(),
              json.get("size").intValue(),
              // The request says which GPU it is.
              0,
              json.get("host").text(),
              json.get("port").intValue(),
              "torch.compile");
      var secret = Secret.of(json.get("secret").text(), "the request");
      return new Peers(
          environment.withAccess(StoreAccess.DEFAULT.withSecret(secret)),
          Duration.ofSeconds(json.get("timeout").integer()));
    }
  }

  /**
   * {@return a request in JSON}
   *
   * @throws dev.symplan.ir.diag.CompileException when it is none
   */
  static Request parse(String text) {
    var json =
        Json.parse(new SourceFile("<request>", text), new JsonErrors(DiagnosticCode.BAD_OPTION));
    json.only(FIELDS);
    return new Request(
        RankGraph.of(json),
        json.find("device").map(Json::intValue).orElse(0),
        json.find("page").map(Json::text).map(Path::of),
        json.find("world").map(Peers::parse));
  }
}
