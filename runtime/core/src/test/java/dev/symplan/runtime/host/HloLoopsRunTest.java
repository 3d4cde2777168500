package dev.symplan.runtime.host;

import static dev.symplan.runtime.host.HloModulesRunTest.RANKS;
import static dev.symplan.runtime.host.HloModulesRunTest.element;
import static dev.symplan.runtime.host.HloModulesRunTest.module;
import static dev.symplan.runtime.host.HloModulesRunTest.run;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.symplan.ir.Arg;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.hlo.HloImporter;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.failure.RunException;
import java.util.ArrayList;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Loops of modules run as often as the modules say, and branches are those that these choose. */
class HloLoopsRunTest {

  /** A scan over rows: halves what it carries, adds a row and sends the sum round a ring. */
  private static String scan(int first, int end, int step, String config) {
    return module(
        """
        %%body (s: (s32[], f32[4], f32[6,4])) -> (s32[], f32[4], f32[6,4]) {
          %%s = (s32[], f32[4]{0}, f32[6,4]{1,0}) parameter(0)
          %%i = s32[] get-tuple-element(%%s), index=0
          %%step = s32[] constant(%3$s)
          %%next = s32[] add(%%i, %%step)
          %%zero = s32[] constant(0)
          %%six = s32[] constant(6)
          %%back = s32[] add(%%i, %%six)
          %%below = pred[] compare(%%i, %%zero), direction=LT
          %%at = s32[] select(%%below, %%back, %%i)
          %%xs = f32[6,4]{1,0} get-tuple-element(%%s), index=2
          %%row = f32[1,4]{1,0} dynamic-slice(%%xs, %%at, %%zero), dynamic_slice_sizes={1,4}
          %%flat = f32[4]{0} reshape(%%row)
          %%half = f32[] constant(0.5)
          %%halves = f32[4]{0} broadcast(%%half), dimensions={}
          %%a = f32[4]{0} get-tuple-element(%%s), index=1
          %%less = f32[4]{0} multiply(%%a, %%halves)
          %%sum = f32[4]{0} add(%%less, %%flat)
          %%sent = f32[4]{0} collective-permute(%%sum), channel_id=1, \
        source_target_pairs={{0,1},{1,2},{2,3},{3,0}}
          ROOT %%t = (s32[], f32[4]{0}, f32[6,4]{1,0}) tuple(%%next, %%sent, %%xs)
        }

        %%test (p: s32[]) -> pred[] {
          %%p = s32[] parameter(0)
          %%last = s32[] constant(%2$s)
          ROOT %%more = pred[] compare(%%p, %%last), direction=LT
        }

        %%condition (u: (s32[], f32[4], f32[6,4])) -> pred[] {
          %%u = (s32[], f32[4]{0}, f32[6,4]{1,0}) parameter(0)
          %%j = s32[] get-tuple-element(%%u), index=0
          %%end = s32[] constant(%2$s)
          ROOT %%c = pred[] %4$s
        }

        """
            .formatted(
                first,
                end,
                step,
                config.isEmpty()
                    ? "compare(%j, %end), direction=LT"
                    : "fusion(%j), kind=kLoop, calls=%test"),
        """
        ENTRY %%main (x: f32[4], xs: f32[6,4]) -> f32[4] {
          %%x = f32[4]{0} parameter(0)
          %%xs = f32[6,4]{1,0} parameter(1)
          %%first = s32[] constant(%s)
          %%start = (s32[], f32[4]{0}, f32[6,4]{1,0}) tuple(%%first, %%x, %%xs)
          %%loop = (s32[], f32[4]{0}, f32[6,4]{1,0}) while(%%start), condition=%%condition, body=%%body%s
          ROOT %%r = f32[4]{0} get-tuple-element(%%loop), index=1
        }
        """
            .formatted(first, config));
  }

  @ParameterizedTest
  @CsvSource({"0, 6, 1", "1, 6, 2", "2, 3, 5", "-4, 0, 1", "4, 4, 1", "5, 2, 1"})
  void roundsOfALoopThatCounts(int first, int end, int step) {
    var found = run(scan(first, end, step, ""), 0);

    for (int rank = 0; rank < RANKS; rank++) {
      for (int i = 0; i < 4; i++) {
        int rounds = 0;
        for (int at = first; at < end; at += step) {
          rounds++;
        }
        // A rank ends with the value that began as many ranks before it as there were rounds.
        int owner = Math.floorMod(rank - rounds, RANKS);
        double sum = element(owner, 0, i);
        for (int at = first; at < end; at += step) {
          sum = sum / 2 + element(owner, 1, Math.floorMod(at, 6) * 4 + i);
          owner = (owner + 1) % RANKS;
        }
        assertThat(found[rank][i]).as("rank %s", rank).isEqualTo(sum);
      }
    }
  }

  /** The condition is a fusion, so that only XLA says how often the loop runs. */
  @Test
  void statedRoundsAreWhatRuns() {
    var config = ", backend_config={\"known_trip_count\":{\"n\":\"3\"}}";

    assertThat(run(scan(0, 3, 1, config), 0)).isDeepEqualTo(run(scan(0, 3, 1, ""), 0));
  }

  private static String branches(String selector, String attributes) {
    return module(
        """
        %first (a: f32[3]) -> f32[3] {
          %a = f32[3]{0} parameter(0)
          ROOT %twice = f32[3]{0} add(%a, %a)
        }

        %second (b: f32[3]) -> f32[3] {
          %b = f32[3]{0} parameter(0)
          %square = f32[3]{0} multiply(%b, %b)
          ROOT %cube = f32[3]{0} multiply(%square, %b)
        }

        """,
        """
        ENTRY %%main (x: f32[3], y: f32[3], n: s32[]) -> f32[3] {
          %%x = f32[3]{0} parameter(0)
          %%y = f32[3]{0} parameter(1)
          %%n = s32[] parameter(2)
          %%zero = s32[] constant(0)
          %%which = %s
          ROOT %%either = f32[3]{0} conditional(%%which, %%x, %%y), %s
        }
        """
            .formatted(selector, attributes));
  }

  private static final String TWO = "branch_computations={%first, %second}";

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "pred[] constant(true) | true_computation=%first, false_computation=%second | false",
        "pred[] constant(false) | true_computation=%first, false_computation=%second | true",
        "pred[] compare(%zero, %zero), direction=NE | branch_computations={%first, %second} | true",
        "s32[] constant(0) | branch_computations={%first, %second} | false",
        "s32[] constant(1) | branch_computations={%first, %second} | true",
        "s32[] constant(-1) | branch_computations={%first, %second} | true",
        "s32[] constant(7) | branch_computations={%first, %second} | true",
      })
  void branchThatTheModuleChooses(String selector, String attributes, boolean second) {
    var found = run(branches(selector, attributes), 0);

    for (int rank = 0; rank < RANKS; rank++) {
      for (int i = 0; i < 3; i++) {
        double given = element(rank, second ? 1 : 0, i);
        assertThat(found[rank][i]).isEqualTo(second ? given * given * given : given + given);
      }
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "s32[] copy(%n)",
        "s32[] add(%n, %n)",
        "pred[] compare(%n, %zero), direction=GT",
        "pred[] compare(%n, %zero), direction=EQ"
      })
  void branchThatARunChooses(String selector) {
    boolean bool = selector.startsWith("pred");
    var attributes = bool ? "true_computation=%first, false_computation=%second" : TWO;
    var found = run(branches(selector, attributes), 0);

    boolean[] taken = new boolean[2];
    for (int rank = 0; rank < RANKS; rank++) {
      int n = (int) element(rank, 2, 0);
      boolean first = selector.endsWith("GT") ? n > 0 : n == 0;
      taken[first ? 0 : 1] = true;
      for (int i = 0; i < 3; i++) {
        double given = element(rank, first ? 0 : 1, i);
        assertThat(found[rank][i])
            .as("rank %s", rank)
            .isEqualTo(first ? given + given : given * given * given);
      }
    }
    assertThat(taken).contains(true);
  }

  /** All ranks run the collectives of both branches, whichever they take. */
  @Test
  void branchWithACollectiveThatARunChooses() {
    var found =
        run(
            module(
                """
                %add (a: f32[], b: f32[]) -> f32[] {
                  %a = f32[] parameter(0)
                  %b = f32[] parameter(1)
                  ROOT %s = f32[] add(%a, %b)
                }

                %first (c: f32[3]) -> f32[3] {
                  %c = f32[3]{0} parameter(0)
                  ROOT %r = f32[3]{0} all-reduce(%c), channel_id=1, replica_groups={{0,1,2,3}}, \
                use_global_device_ids=true, to_apply=%add
                }

                %second (d: f32[3]) -> f32[3] {
                  ROOT %d = f32[3]{0} parameter(0)
                }

                """,
                """
                ENTRY %main (x: f32[3], n: s32[]) -> f32[3] {
                  %x = f32[3]{0} parameter(0)
                  %n = s32[] parameter(1)
                  %zero = s32[] constant(0)
                  %which = pred[] compare(%n, %zero), direction=GT
                  ROOT %e = f32[3]{0} conditional(%which, %x, %x), true_computation=%first, \
                false_computation=%second
                }
                """),
            0);

    for (int rank = 0; rank < RANKS; rank++) {
      for (int i = 0; i < 3; i++) {
        double sum = 0;
        for (int from = 0; from < RANKS; from++) {
          sum += element(from, 0, i);
        }
        boolean first = (int) element(rank, 1, 0) > 0;
        assertThat(found[rank][i]).isEqualTo(first ? sum : element(rank, 0, i));
      }
    }
  }

  /** Two rounds are planned: the second one begins with what the first one gave. */
  @ParameterizedTest
  @CsvSource({
    "'',rounds=?",
    "', backend_config={\"known_trip_count\":{\"n\":\"5000\"}}',rounds=5000"
  })
  void loopsOfUnknownOrManyRoundsArePlannedOnly(String config, String rounds) {
    var text =
        module(
            """
            %body (s: f32[1024]) -> f32[1024] {
              %s = f32[1024]{0} parameter(0)
              %far = f32[1024]{0} collective-permute(%s), channel_id=1, \
            source_target_pairs={{0,1},{1,2},{2,3},{3,0}}
              ROOT %mean = f32[1024]{0} add(%far, %s)
            }

            %condition (u: f32[1024]) -> pred[] {
              %u = f32[1024]{0} parameter(0)
              %one = f32[1]{0} slice(%u), slice={[0:1]}
              %flat = f32[] reshape(%one)
              %limit = f32[] constant(100)
              ROOT %c = pred[] compare(%flat, %limit), direction=LT
            }

            """,
            """
            ENTRY %main (x: f32[1024]) -> f32[1024] {
              %x = f32[1024]{0} parameter(0)
              ROOT %loop = f32[1024]{0} while(%x), condition=%condition, body=%body\
            """
                + config
                + "\n}\n");
    var warnings = new ArrayList<String>();
    var program =
        HloImporter.read(
            new SourceFile("m.hlo", text),
            BuiltinOps.registry(),
            0,
            warning -> warnings.add(warning.message()));
    var plan = Compiler.forTarget(Target.H200_X4).compile(program);

    assertThat(warnings.getFirst()).endsWith("no op of PyTorch computes 'loop', which is a while");
    var graph = plan.forRank(0).graph();
    assertThat(graph.ops().stream().filter(op -> op.def().name().name().equals("while")))
        .hasSize(3)
        .allMatch(op -> op.args().getLast().equals(new Arg.Str(rounds)));
    // The carried value, and the one that arrives meanwhile.
    assertThat(plan.total().bytes()).isBetween(2 * 4096L, 3 * 4096L);
    assertThatThrownBy(
            () -> {
              try (var session = Session.open(plan, new HostBackend())) {
                session.run();
              }
            })
        .isInstanceOf(RunException.class)
        .hasMessageContaining("hlo::while_condition");
  }
}
