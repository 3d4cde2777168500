package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.hlo.HloImporter;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Hosts;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.tensor.HostTensor;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Modules give on the host what the definitions of their instructions give. */
class HloModulesRunTest {
  static final int RANKS = 4;

  private static final String ADD =
      """
      %add (a: f32[], b: f32[]) -> f32[] {
        %a = f32[] parameter(0)
        %b = f32[] parameter(1)
        ROOT %s = f32[] add(%a, %b)
      }

      """;

  /** An element of an argument: another one on each rank, a multiple of 1/8. */
  static double element(int rank, int input, long index) {
    return ((rank * 31 + input * 17 + index * 7) % 23 - 11) / 8.0;
  }

  /** The outputs of each rank, their elements row by row. */
  static double[][] run(String module, int output) {
    return run(module, output, CompileOptions.DEFAULT);
  }

  private static double[][] run(String module, int output, CompileOptions options) {
    var program =
        HloImporter.read(new SourceFile("m.hlo", module), BuiltinOps.registry(), 0, warning -> {});
    var plan = Compiler.forTarget(Target.H200_X4).with(options).compile(program);
    var found = new double[RANKS][];
    try (var session = Session.open(plan, new HostBackend())) {
      for (int rank = 0; rank < RANKS; rank++) {
        for (int i = 0; i < session.inputNames().size(); i++) {
          fill(session.input(rank, i).orElseThrow(), rank, i);
        }
      }
      session.run();
      for (int rank = 0; rank < RANKS; rank++) {
        found[rank] = elements(session.output(rank, output).orElseThrow());
      }
    }
    return found;
  }

  private static void fill(HostTensor tensor, int rank, int input) {
    long count = tensor.type().numel();
    for (long i = 0; i < count; i++) {
      tensor.set(element(rank, input, i), index(tensor, i));
    }
  }

  private static double[] elements(HostTensor tensor) {
    var all = new double[(int) tensor.type().numel()];
    for (int i = 0; i < all.length; i++) {
      all[i] = tensor.get(index(tensor, i));
    }
    return all;
  }

  /** Where the element is that comes {@code flat}th, row by row, whatever the layout. */
  private static long[] index(HostTensor tensor, long flat) {
    var type = tensor.type();
    var index = new long[type.rank()];
    long rest = flat;
    for (int dim = type.rank() - 1; dim >= 0; dim--) {
      index[dim] = rest % type.size(dim);
      rest /= type.size(dim);
    }
    return index;
  }

  static String module(String computations, String body) {
    return "HloModule m, num_partitions=4\n\n" + computations + body;
  }

  @ParameterizedTest
  @CsvSource({"'{1,0}',1", "'{0,1}',1", "'{1,0}',0", "'{0,1}',0"})
  void gathersAlongAnyDimensionInAnyLayout(String layout, int dim) {
    var shape = dim == 0 ? "f32[12,4]" : "f32[3,16]";
    var found =
        run(
            module(
                "",
                """
                ENTRY %%main (x: f32[3,4]) -> %s {
                  %%x = f32[3,4]%s parameter(0)
                  ROOT %%g = %s%s all-gather(%%x), channel_id=1, replica_groups=[1,4]<=[4], \
                dimensions={%s}, use_global_device_ids=true
                }
                """
                    .formatted(shape, layout, shape, layout, dim)),
            0);

    for (int rank = 0; rank < RANKS; rank++) {
      for (int row = 0; row < (dim == 0 ? 12 : 3); row++) {
        for (int column = 0; column < (dim == 0 ? 4 : 16); column++) {
          int from = dim == 0 ? row / 3 : column / 4;
          assertThat(found[rank][row * (dim == 0 ? 4 : 16) + column])
              .isEqualTo(element(from, 0, row % 3 * 4 + column % 4));
        }
      }
    }
  }

  @ParameterizedTest
  @CsvSource({
    "'{{0,2},{1,3}}',2",
    "'[2,2]<=[2,2]T(1,0)',2",
    "'mesh[''a''=2,''b''=2] {''a''}',2",
    "'{{0,1},{2,3}}',1",
    "'[2,2]<=[4]',1",
    "'mesh[''a''=2,''b''=2] {''b''}',1",
  })
  void reducesAmongTheGroupsThatEachFormNames(String groups, int distance) {
    var found =
        run(
            module(
                ADD,
                """
                ENTRY %%main (x: f32[5]) -> f32[5] {
                  %%x = f32[5]{0} parameter(0)
                  ROOT %%r = f32[5]{0} all-reduce(%%x), channel_id=1, replica_groups=%s, \
                use_global_device_ids=true, to_apply=%%add
                }
                """
                    .formatted(groups)),
            0);

    for (int rank = 0; rank < RANKS; rank++) {
      for (int i = 0; i < 5; i++) {
        assertThat(found[rank][i]).isEqualTo(element(rank, 0, i) + element(rank ^ distance, 0, i));
      }
    }
  }

  @Test
  void scattersAndExchangesInTheGroupsOrder() {
    var found =
        run(
            module(
                ADD,
                """
                ENTRY %main (x: f32[2,8]) -> f32[2,2] {
                  %x = f32[2,8]{1,0} parameter(0)
                  %s = f32[2,4]{1,0} reduce-scatter(%x), channel_id=1, replica_groups={{1,0},{2,3}}, \
                dimensions={1}, use_global_device_ids=true, to_apply=%add
                  %e = f32[2,4]{1,0} all-to-all(%s), channel_id=2, replica_groups={{0,1,2,3}}, \
                dimensions={1}
                  ROOT %c = f32[2,2]{1,0} slice(%e), slice={[0:2], [0:4:2]}
                }
                """),
            0);

    int[] place = {1, 0, 0, 1};
    for (int rank = 0; rank < RANKS; rank++) {
      for (int row = 0; row < 2; row++) {
        for (int column = 0; column < 2; column++) {
          int sender = 2 * column;
          int from = place[sender] * 4 + rank;
          double sum = element(sender, 0, row * 8 + from) + element(sender ^ 1, 0, row * 8 + from);
          assertThat(found[rank][row * 2 + column]).isEqualTo(sum);
        }
      }
    }
  }

  /** Only NCCL runs between hosts, which moves no separate rows. */
  @ParameterizedTest
  @ValueSource(strings = {"all-gather", "reduce-scatter"})
  void rowsOfSlicesBetweenHosts(String opcode) {
    boolean gathers = opcode.equals("all-gather");
    var found =
        run(
            module(
                ADD,
                """
                ENTRY %%main (x: f32[3,8]) -> f32[3,%1$s] {
                  %%x = f32[3,8]{1,0} parameter(0)
                  ROOT %%r = f32[3,%1$s]{1,0} %2$s(%%x), channel_id=1, replica_groups=[1,4]<=[4], \
                dimensions={1}, use_global_device_ids=true%3$s
                }
                """
                    .formatted(gathers ? 32 : 2, opcode, gathers ? "" : ", to_apply=%add")),
            0,
            CompileOptions.DEFAULT.withHosts(Hosts.filled(ImmutableIntArray.of(2, 2))));

    for (int rank = 0; rank < RANKS; rank++) {
      int columns = gathers ? 32 : 2;
      for (int row = 0; row < 3; row++) {
        for (int column = 0; column < columns; column++) {
          double sum = 0;
          for (int peer = 0; peer < RANKS; peer++) {
            sum += element(peer, 0, row * 8 + rank * 2 + column);
          }
          double expected = gathers ? element(column / 8, 0, row * 8 + column % 8) : sum;
          assertThat(found[rank][row * columns + column]).isEqualTo(expected);
        }
      }
    }
  }

  /** The ring of ring attention: queries stay, keys and values go round, in each way to say so. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void ringOfProducts(boolean started) {
    var pairs = "channel_id=1, source_target_pairs={{0,1},{1,2},{2,3},{3,0}}";
    var steps = new StringBuilder();
    for (int step = 1; step < RANKS; step++) {
      var from = step == 1 ? "" : Integer.toString(step - 1);
      for (var name : new String[] {"k", "v"}) {
        var type = "f32[2,4]" + (name.equals("k") ? "{1,0}" : "{0,1}");
        steps.append(
            started
                ? """
                  %%%1$s%2$s-start = (%4$s, %4$s, u32[], u32[]) collective-permute-start(%%%1$s%3$s), %5$s
                  %%%1$s%2$s = %4$s collective-permute-done(%%%1$s%2$s-start)
                """
                    .formatted(name, step, from, type, pairs)
                : "  %%%1$s%2$s = %4$s collective-permute(%%%1$s%3$s), %5$s\n"
                    .formatted(name, step, from, type, pairs));
      }
      steps.append(
          """
            %%s%1$s = f32[3,2]{1,0} dot(%%q, %%k%1$s), lhs_contracting_dims={1}, rhs_contracting_dims={1}
            %%o%1$s = f32[3,4]{1,0} dot(%%s%1$s, %%v%1$s), lhs_contracting_dims={1}, rhs_contracting_dims={0}
            %%a%1$s = f32[3,4]{1,0} add(%%a%2$s, %%o%1$s)
          """
              .formatted(step, step - 1));
    }
    var found =
        run(
            module(
                "",
                """
                ENTRY %main (q: f32[3,4], k: f32[2,4], v: f32[2,4]) -> f32[3,4] {
                  %q = f32[3,4]{1,0} parameter(0)
                  %k = f32[2,4]{1,0} parameter(1)
                  %v = f32[2,4]{0,1} parameter(2)
                  %s0 = f32[3,2]{1,0} dot(%q, %k), lhs_contracting_dims={1}, rhs_contracting_dims={1}
                  %a0 = f32[3,4]{1,0} dot(%s0, %v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
                """
                    + steps
                    + "  ROOT %r = f32[3,4]{1,0} add(%a3, %q)\n}\n"),
            0);

    for (int rank = 0; rank < RANKS; rank++) {
      for (int row = 0; row < 3; row++) {
        for (int column = 0; column < 4; column++) {
          double sum = element(rank, 0, row * 4 + column);
          // Whatever the order is, each rank meets the keys of all.
          for (int peer = 0; peer < RANKS; peer++) {
            for (int key = 0; key < 2; key++) {
              double score = 0;
              for (int i = 0; i < 4; i++) {
                score += element(rank, 0, row * 4 + i) * element(peer, 1, key * 4 + i);
              }
              sum += score * element(peer, 2, key * 4 + column);
            }
          }
          assertThat(found[rank][row * 4 + column]).isCloseTo(sum, within(1e-4));
        }
      }
    }
  }

  /** By rank, the ranks that pairs take their elements from; −1 is nobody. */
  @ParameterizedTest
  @CsvSource({
    "'{{0,1},{1,2},{2,3}}', '-1 0 1 2'",
    "'{{0,1},{1,0},{2,3},{3,2}}', '1 0 3 2'",
    "'{{0,1},{2,3}}', '-1 0 -1 2'",
    "'{{0,2},{1,3}}', '-1 -1 0 1'",
    "'{{0,1}}', '-1 0 -1 -1'",
    "'{{3,0},{0,3},{1,1}}', '3 1 -1 0'",
    "'{{0,0},{1,1},{2,2},{3,3}}', '0 1 2 3'",
    "'{}', '-1 -1 -1 -1'",
  })
  void permutesByPairs(String pairs, String sources) {
    var found =
        run(
            module(
                "",
                """
                ENTRY %%main (x: f32[2,5]) -> f32[2,5] {
                  %%x = f32[2,5]{0,1} parameter(0)
                  %%y = f32[2,5]{0,1} multiply(%%x, %%x)
                  ROOT %%p = f32[2,5]{1,0} collective-permute(%%y), channel_id=1, source_target_pairs=%s
                }
                """
                    .formatted(pairs)),
            0);

    for (int rank = 0; rank < RANKS; rank++) {
      int source = Integer.parseInt(sources.split(" ")[rank]);
      for (int i = 0; i < 10; i++) {
        double sent = source < 0 ? 0 : Math.pow(element(source, 0, i), 2);
        assertThat(found[rank][i]).as("rank %s", rank).isEqualTo(sent);
      }
    }
  }

  @Test
  void permutesReplicasWithoutAChannel() {
    var found =
        run(
            """
            HloModule m, replica_count=2, num_partitions=2

            ENTRY %main (x: f32[3]) -> f32[3] {
              %x = f32[3]{0} parameter(0)
              ROOT %p = f32[3]{0} collective-permute(%x), source_target_pairs={{0,1}}
            }
            """,
            0);

    for (int rank = 0; rank < RANKS; rank++) {
      for (int i = 0; i < 3; i++) {
        assertThat(found[rank][i]).isEqualTo(rank < 2 ? 0 : element(rank - 2, 0, i));
      }
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"{1,0}", "{0,1}"})
  void multipliesAndReducesAsTheInstructionsSay(String layout) {
    var found =
        run(
            module(
                ADD,
                """
                ENTRY %%main (x: f32[3,2,4], y: f32[4,5,2]) -> f32[2,5] {
                  %%x = f32[3,2,4]{2,1,0} parameter(0)
                  %%y = f32[4,5,2]{2,1,0} parameter(1)
                  %%d = f32[2,3,5]{2,1,0} dot(%%x, %%y), lhs_batch_dims={1}, \
                lhs_contracting_dims={2}, rhs_batch_dims={2}, rhs_contracting_dims={0}
                  %%zero = f32[] constant(0)
                  %%r = f32[2,5]%1$s reduce(%%d, %%zero), dimensions={1}, to_apply=%%add
                  %%half = f32[] constant(0.5)
                  %%halves = f32[2,5]%1$s broadcast(%%half), dimensions={}
                  %%low = f32[2,5]%1$s subtract(%%halves, %%r)
                  %%row = f32[5]{0} iota(), iota_dimension=0
                  %%rows = f32[2,5]%1$s broadcast(%%row), dimensions={1}
                  %%more = pred[2,5]%1$s compare(%%low, %%rows), direction=GT
                  ROOT %%m = f32[2,5]%1$s select(%%more, %%low, %%rows)
                }
                """
                    .formatted(layout)),
            0);

    for (int rank = 0; rank < RANKS; rank++) {
      for (int batch = 0; batch < 2; batch++) {
        for (int column = 0; column < 5; column++) {
          double sum = 0;
          for (int row = 0; row < 3; row++) {
            for (int k = 0; k < 4; k++) {
              sum +=
                  element(rank, 0, row * 8 + batch * 4 + k)
                      * element(rank, 1, k * 10 + column * 2 + batch);
            }
          }
          assertThat(found[rank][batch * 5 + column])
              .isCloseTo(Math.max(0.5 - sum, column), within(1e-5));
        }
      }
    }
  }

  @Test
  void padsClampsConvertsAndConcatenates() {
    var found =
        run(
            module(
                "",
                """
                ENTRY %main (x: f32[6], n: s32[6]) -> f32[16] {
                  %x = f32[6]{0} parameter(0)
                  %n = s32[6]{0} parameter(1)
                  %low = f32[] constant(-0.5)
                  %high = f32[] constant(0.75)
                  %c = f32[6]{0} clamp(%low, %x, %high)
                  %two = s32[] constant(2)
                  %twos = s32[6]{0} broadcast(%two), dimensions={}
                  %q = s32[6]{0} divide(%n, %twos)
                  %f = f32[6]{0} convert(%q)
                  %p = f32[9]{0} pad(%f, %high), padding=1_2
                  %zero = s32[] constant(-3)
                  %part = f32[1]{0} dynamic-slice(%x, %zero), dynamic_slice_sizes={1}
                  ROOT %all = f32[16]{0} concatenate(%c, %p, %part), dimensions={0}
                }
                """),
            0);

    for (int rank = 0; rank < RANKS; rank++) {
      for (int i = 0; i < 6; i++) {
        assertThat(found[rank][i]).isEqualTo(Math.clamp(element(rank, 0, i), -0.5, 0.75));
        assertThat(found[rank][7 + i]).isEqualTo((int) element(rank, 1, i) / 2);
      }
      assertThat(found[rank][6]).isEqualTo(0.75);
      assertThat(found[rank][13]).isEqualTo(0.75);
      assertThat(found[rank][14]).isEqualTo(0.75);
      assertThat(found[rank][15]).isEqualTo(element(rank, 0, 0));
    }
  }

  @Test
  void reinterpretsTheBytesThatTheModuleSpeaksOf() {
    var found =
        run(
            module(
                "",
                """
                ENTRY %main (x: f32[2,3]) -> f32[6] {
                  %x = f32[2,3]{1,0} parameter(0)
                  %turned = f32[3,2]{1,0} transpose(%x), dimensions={1,0}
                  ROOT %flat = f32[6]{0} bitcast(%turned)
                }
                """),
            0);

    for (int rank = 0; rank < RANKS; rank++) {
      for (int i = 0; i < 6; i++) {
        assertThat(found[rank][i]).isEqualTo(element(rank, 0, i % 2 * 3 + i / 2));
      }
    }
  }

  @Test
  void runsStartedCollectivesAndViewsOfLayouts() {
    var found =
        run(
            """
            HloModule m, is_scheduled=true, num_partitions=4

            """
                + ADD
                + """
                %gather (g: f32[2,3]) -> f32[8,3] {
                  %g = f32[2,3]{1,0} parameter(0)
                  ROOT %w = f32[8,3]{1,0} all-gather(%g), channel_id=1, replica_groups=[1,4]<=[4], \
                dimensions={0}, use_global_device_ids=true
                }, execution_thread="parallel"

                ENTRY %main (x: f32[2,3]) -> (f32[3,8], f32[6]) {
                  %x = f32[2,3]{1,0} parameter(0)
                  %start = ((f32[2,3]{1,0}), f32[8,3]{1,0}) async-start(%x), calls=%gather
                  %flat = f32[6]{0} bitcast(%x)
                  %r-start = f32[6]{0} all-reduce-start(%flat), channel_id=2, replica_groups={}, \
                use_global_device_ids=true, to_apply=%add
                  %square = f32[2,3]{1,0} multiply(%x, %x)
                  %done = f32[8,3]{1,0} async-done(%start)
                  %turned = f32[3,8]{0,1} bitcast(%done)
                  %r-done = f32[6]{0} all-reduce-done(%r-start)
                  %squares = f32[6]{0} bitcast(%square)
                  %sum = f32[6]{0} add(%r-done, %squares)
                  ROOT %t = (f32[3,8]{0,1}, f32[6]{0}) tuple(%turned, %sum)
                }
                """,
            1);

    for (int rank = 0; rank < RANKS; rank++) {
      for (int i = 0; i < 6; i++) {
        double sum = 0;
        for (int from = 0; from < RANKS; from++) {
          sum += element(from, 0, i);
        }
        assertThat(found[rank][i]).isEqualTo(sum + Math.pow(element(rank, 0, i), 2));
      }
    }
  }

  /** bf16 has the upper half of a float's bits; what has no fewer bits than its type stays. */
  @ParameterizedTest
  @CsvSource({"7,true", "23,false"})
  void precisionIsReduced(int mantissa, boolean rounds) {
    var found =
        run(
            module(
                "",
                """
                ENTRY %%main (x: f32[64]) -> f32[64] {
                  %%x = f32[64]{0} parameter(0)
                  %%y = f32[64]{0} multiply(%%x, %%x)
                  %%z = f32[64]{0} multiply(%%y, %%x)
                  %%none = f32[0]{0} constant({})
                  %%all = f32[64]{0} concatenate(%%z, %%none), dimensions={0}
                  ROOT %%r = f32[64]{0} reduce-precision(%%all), exponent_bits=8, mantissa_bits=%s
                }
                """
                    .formatted(mantissa)),
            0);

    int changed = 0;
    for (int i = 0; i < 64; i++) {
      float exact = (float) Math.pow(element(0, 0, i), 3);
      int bits = Float.floatToIntBits(exact);
      int nearest = bits + 0x7FFF + (bits >>> 16 & 1) & 0xFFFF0000;
      assertThat(found[0][i]).isEqualTo(rounds ? Float.intBitsToFloat(nearest) : exact);
      changed += found[0][i] == exact ? 0 : 1;
    }
    assertThat(changed > 0).isEqualTo(rounds);
  }

  /** The sign of a NaN is a NaN, as XLA has it, and unlike in PyTorch. */
  @Test
  void signsOfFloatsKeepNans() {
    var module =
        """
        HloModule m, num_partitions=4

        ENTRY %e (x: f32[32]) -> (f32[32], f32[32]) {
          %x = f32[32] parameter(0)
          %none = f32[32] subtract(%x, %x)
          %nan = f32[32] divide(%none, %none)
          %a = f32[32] sign(%x)
          %b = f32[32] sign(%nan)
          ROOT %t = (f32[32], f32[32]) tuple(%a, %b)
        }
        """;
    var signs = run(module, 0);
    var nans = run(module, 1);
    for (int rank = 0; rank < RANKS; rank++) {
      for (int i = 0; i < 32; i++) {
        assertThat(signs[rank][i]).isEqualTo(Math.signum(element(rank, 0, i)));
        assertThat(nans[rank][i]).isNaN();
      }
    }
  }

  /** Bits that come from the left are 0, also where the highest bit is set. */
  @Test
  void unsignedNumbersAreShiftedWithoutASign() {
    var module =
        """
        HloModule m, num_partitions=4

        ENTRY %e (x: f32[32]) -> s32[32] {
          %x = f32[32] parameter(0)
          %s = s64[32] convert(%x)
          %u = u64[32] convert(%s)
          %by = u64[] constant(60)
          %all = u64[32] broadcast(%by), dimensions={}
          %high = u64[32] shift-right-logical(%u, %all)
          ROOT %r = s32[32] convert(%high)
        }
        """;
    var high = run(module, 0);
    for (int rank = 0; rank < RANKS; rank++) {
      for (int i = 0; i < 32; i++) {
        assertThat(high[rank][i]).isEqualTo((long) element(rank, 0, i) >>> 60);
      }
    }
  }
}
