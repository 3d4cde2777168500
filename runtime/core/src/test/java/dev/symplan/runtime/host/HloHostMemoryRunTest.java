package dev.symplan.runtime.host;

import static dev.symplan.runtime.host.HloModulesRunTest.module;
import static dev.symplan.runtime.host.HloModulesRunTest.run;
import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.hlo.HloImporter;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Modules that keep arrays in the host's memory compute what they do without that. */
class HloHostMemoryRunTest {
  private static final long ROW = 128;

  /** A scan that keeps what it was given in each round, and one that takes that back. */
  private static String scans(String keeps, String takes, String counts) {
    return module(
        """
        %%keep (s: (s32[], f32[4], f32[3,4])) -> (s32[], f32[4], f32[3,4]) {
          %%s = (s32[], f32[4]{0}, f32[3,4]{1,0}) parameter(0)
          %%i = s32[] get-tuple-element(%%s), index=0
          %%one = s32[] constant(1)
          %%next = s32[] add(%%i, %%one)
          %%zero = s32[] constant(0)
          %%a = f32[4]{0} get-tuple-element(%%s), index=1
          %%all = f32[3,4]{1,0} get-tuple-element(%%s), index=2
        %1$s
          %%sum = f32[4]{0} add(%%a, %%a)
          ROOT %%t = (s32[], f32[4]{0}, f32[3,4]{1,0}) tuple(%%next, %%sum, %%put)
        }

        %%take (u: (s32[], f32[4], f32[3,4])) -> (s32[], f32[4], f32[3,4]) {
          %%u = (s32[], f32[4]{0}, f32[3,4]{1,0}) parameter(0)
          %%j = s32[] get-tuple-element(%%u), index=0
          %%first = s32[] constant(1)
          %%more = s32[] add(%%j, %%first)
          %%none = s32[] constant(0)
          %%two = s32[] constant(2)
          %%at = s32[] subtract(%%two, %%j)
          %%b = f32[4]{0} get-tuple-element(%%u), index=1
          %%kept = f32[3,4]{1,0} get-tuple-element(%%u), index=2
        %2$s
          %%less = f32[4]{0} subtract(%%b, %%own)
          ROOT %%v = (s32[], f32[4]{0}, f32[3,4]{1,0}) tuple(%%more, %%less, %%kept)
        }

        %%test (w: (s32[], f32[4], f32[3,4])) -> pred[] {
          %%w = (s32[], f32[4]{0}, f32[3,4]{1,0}) parameter(0)
          %%k = s32[] get-tuple-element(%%w), index=0
          %%end = s32[] constant(3)
          ROOT %%c = pred[] compare(%%k, %%end), direction=%3$s
        }

        """
            .formatted(keeps, takes, counts),
        """
        ENTRY %main (x: f32[4]) -> f32[4] {
          %x = f32[4]{0} parameter(0)
          %n = s32[] constant(0)
          %number = f32[] constant(0)
          %zeros = f32[3,4]{1,0} broadcast(%number), dimensions={}
          %in = (s32[], f32[4]{0}, f32[3,4]{1,0}) tuple(%n, %x, %zeros)
          %forth = (s32[], f32[4]{0}, f32[3,4]{1,0}) while(%in), condition=%test, body=%keep
          %y = f32[4]{0} get-tuple-element(%forth), index=1
          %saved = f32[3,4]{1,0} get-tuple-element(%forth), index=2
          %again = (s32[], f32[4]{0}, f32[3,4]{1,0}) tuple(%n, %y, %saved)
          %back = (s32[], f32[4]{0}, f32[3,4]{1,0}) while(%again), condition=%test, body=%take
          ROOT %r = f32[4]{0} get-tuple-element(%back), index=1
        }
        """);
  }

  private static final String PUT =
      """
        %row = f32[1,4]{1,0} reshape(%a)
        %put = f32[3,4]{1,0} dynamic-update-slice(%all, %row, %i, %zero)\
      """;
  private static final String OWN =
      """
        %part = f32[1,4]{1,0} dynamic-slice(%kept, %at, %none), dynamic_slice_sizes={1,4}
        %own = f32[4]{0} bitcast(%part)\
      """;

  private static String plain() {
    return scans(PUT, OWN, "LT");
  }

  private static final String UNPLACED =
      scans(
          """
            %moved = f32[4]{0} custom-call(%a), custom_call_target="MoveToHost"
            %row = f32[1,4]{1,0} reshape(%moved)
            %put = f32[3,4]{1,0} dynamic-update-slice(%all, %row, %i, %zero)\
          """,
          """
            %part = f32[1,4]{1,0} dynamic-slice(%kept, %at, %none), dynamic_slice_sizes={1,4}
            %flat = f32[4]{0} bitcast(%part)
            %own = f32[4]{0} custom-call(%flat), custom_call_target="MoveToDevice"\
          """,
          "LT");

  private static final String PLACED =
      plain().replace("%put = f32[3,4]{1,0}", "%put = f32[3,4]{1,0:S(5)}");

  private static final String STARTED =
      plain()
          .replace(
              "%put = f32[3,4]{1,0} dynamic-update-slice(%all, %row, %i, %zero)",
              "%start = ((f32[3,4]{1,0:S(5)}, f32[1,4]{1,0}, s32[], s32[]), f32[3,4]{1,0:S(5)},"
                  + " u32[]) dynamic-update-slice-start(%all, %row, %i, %zero)\n"
                  + "  %put = f32[3,4]{1,0:S(5)} dynamic-update-slice-done(%start)")
          .replace("f32[1,4]{1,0} dynamic-slice(", "f32[1,4]{1,0} fusion(")
          .replace(
              "(%kept, %at, %none), dynamic_slice_sizes={1,4}",
              "(%kept, %at, %none), kind=kLoop, calls=%cut")
          .replace(
              "%keep (",
              """
              %cut (c0: f32[3,4], c1: s32[], c2: s32[]) -> f32[1,4] {
                %c0 = f32[3,4]{1,0:S(5)} parameter(0)
                %c1 = s32[] parameter(1)
                %c2 = s32[] parameter(2)
                ROOT %c3 = f32[1,4]{1,0} dynamic-slice(%c0, %c1, %c2), dynamic_slice_sizes={1,4}
              }

              %keep (\
              """);

  /** What was imported, and how much of the host's memory the plan takes. */
  private record Found(List<String> warnings, long hostBytes, long deviceBytes) {}

  private static Found plan(String module) {
    var warnings = new ArrayList<String>();
    var program =
        HloImporter.read(
            new SourceFile("m.hlo", module),
            BuiltinOps.registry(),
            0,
            (Diagnostic warning) -> warnings.add(warning.message()));
    var plan = Compiler.forTarget(Target.H200_X4).compile(program);
    return new Found(warnings, plan.forRank(0).hostBytes(), plan.total().bytes());
  }

  static List<String> scansWithHost() {
    return List.of(UNPLACED, PLACED, STARTED);
  }

  /** The rows of the array are tensors of their own there, and the array is nowhere. */
  @ParameterizedTest
  @ValueSource(ints = {0, 1, 2})
  void loopsKeepOneTensorForEachRound(int form) {
    var module = scansWithHost().get(form);

    assertThat(run(module, 0)).isDeepEqualTo(run(plain(), 0));
    assertThat(plan(module)).isEqualTo(new Found(List.of(), 3 * ROW, 2 * ROW));
    assertThat(plan(plain()).hostBytes()).isZero();
  }

  /** Two rounds stand for all, and nothing moves in them. */
  @Test
  void loopsWithoutKnownRoundsKeepArraysOnTheDevice() {
    for (var module : scansWithHost()) {
      var found = plan(module.replace("direction=LT", "direction=NE"));

      assertThat(found.hostBytes()).as(module).isZero();
      assertThat(found.warnings()).anyMatch(text -> text.contains("can be planned, but not run"));
    }
    assertThat(plan(UNPLACED.replace("direction=LT", "direction=NE")).warnings())
        .anyMatch(text -> text.contains("in a loop whose rounds are not known or too many"));
  }

  private static String entry(String body) {
    return "HloModule m, num_partitions=4\n\n"
        + "ENTRY %main {\n"
        + body.replace("; ", "\n").indent(2)
        + "}\n";
  }

  /** Each module computes what it does without the host's memory; some say what they cannot. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          %h = f32[4,32]{1,0:S(5)} parameter(0); ROOT %r = f32[4,32]{1,0} copy(%h) | 512 | ''
          %x = f32[4,32]{1,0} parameter(0); ROOT %r = f32[4,32]{1,0:S(5)} copy(%x) | 512 | ''
          ROOT %h = f32[4,32]{1,0:S(5)} parameter(0) | 512 | ''
          %h = f32[4,32]{1,0:S(5)} parameter(0); %b = f32[128]{0:S(5)} bitcast(%h); ROOT %r = f32[128]{0} copy(%b) | 512 | ''
          %h = f32[4,32]{1,0:S(5)} parameter(0); %i = s32[] constant(2); %z = s32[] constant(0); ROOT %r = f32[2,32]{1,0} dynamic-slice(%h, %i, %z), dynamic_slice_sizes={2,32} | 512 | ''
          %h = f32[4,32]{1,0:S(5)} parameter(0); %i = s32[] constant(9); %z = s32[] constant(0); ROOT %r = f32[1,32]{1,0:S(5)} dynamic-slice(%h, %i, %z), dynamic_slice_sizes={1,32} | 512 | ''
          %x = f32[4,32]{1,0} parameter(0); %t = f32[32,4]{0,1} bitcast(%x); %h = f32[32,4]{0,1:S(5)} copy(%t); ROOT %r = f32[32,4]{1,0} copy(%h) | 512 | ''
          %h = f32[4,32]{1,0:S(5)} parameter(0); %i = s32[] constant(2); %z = s32[] constant(0); ROOT %r = f32[4,16]{1,0} dynamic-slice(%h, %z, %i), dynamic_slice_sizes={4,16} | 512 | copied to the device first
          %h = f32[4,32]{1,0:S(5)} parameter(0); %i = s32[] parameter(1); %z = s32[] constant(0); ROOT %r = f32[1,32]{1,0} dynamic-slice(%h, %i, %z), dynamic_slice_sizes={1,32} | 512 | copied to the device first
          %h = f32[4,32]{1,0:S(5)} parameter(0); ROOT %r = f32[4,32]{1,0} negate(%h) | 512 | copied to the device first
          %h = f32[4,32]{1,0:S(5)} parameter(0); ROOT %r = f32[32,4]{0,1:S(5)} bitcast(%h) | 1024 | copied to the device first
          %h = f32[4,32]{1,0:S(5)} parameter(0); %x = f32[1,32]{1,0} parameter(1); %i = s32[] constant(1); %z = s32[] constant(0); ROOT %r = f32[4,32]{1,0:S(5)} dynamic-update-slice(%h, %x, %i, %z) | 1024 | put together on the device
          """)
  void arraysOnTheHostAreWhatTheyAre(String body, long hostBytes, String warning) {
    var module = entry(body);
    var found = plan(module);

    assertThat(run(module, 0)).isDeepEqualTo(run(module.replace(":S(5)", ""), 0));
    assertThat(found.hostBytes()).isEqualTo(hostBytes);
    if (warning.isEmpty()) {
      assertThat(found.warnings()).isEmpty();
    } else {
      assertThat(found.warnings()).singleElement().asString().contains(warning);
    }
  }
}
