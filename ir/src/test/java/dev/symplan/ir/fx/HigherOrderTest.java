package dev.symplan.ir.fx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.Declarations;
import dev.symplan.ir.text.GraphPrinter;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Higher-order ops and attributes of the module, as the graphs that they become. */
class HigherOrderTest {
  private static final String SCHEMAS =
      """
      my::fill(Tensor(a!) out, Tensor x) -> ()
      my::swap(Tensor(a!) x, Tensor(b!)? y, float by) -> Tensor
      my::both(Tensor(a!)[] xs, int n) -> (Tensor, Tensor)
      my::log(Tensor x, str name) -> ()
      my::send(Tensor x) -> Tensor
      my::into.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)
      """;
  private static final String X = "x: \"f32[4][1]cuda:0\"";
  private static final String F4 = "\"f32[4][1]cuda:0\"";

  private final List<Diagnostic> warnings = new ArrayList<>();

  /** {@return the statements of the graph in the graph language, with its head} */
  private String imported(String text) {
    var registry = Declarations.read(new SourceFile("ops.txt", SCHEMAS), BuiltinOps.registry());
    var options =
        new ImportOptions(
            "g", ImmutableList.of(), 1, ImmutableMap.of(), ImmutableMap.of(), registry);
    var printed =
        GraphPrinter.print(
            FxImporter.read(new SourceFile("g.fx.txt", text), options, warnings::add));
    return printed.substring(printed.indexOf("graph g("));
  }

  private String graph(String params, String statements) {
    return imported(FxTexts.listing(params, statements.replace("F4", F4)));
  }

  @Test
  void functionalizedOpsWriteCopies() {
    assertThat(
            graph(
                X,
                """
                h = torch.ops.higher_order.auto_functionalized(torch.ops.my.swap.default, x = x, y = None, by = 0.5)
                result: F4 = h[0]
                new_x: F4 = h[1];  h = None
                return (x, result, new_x)
                """))
        .isEqualTo(
            """
            graph g(x: f32[4]) {
              new_x: f32[4] = aten::clone(x)
              result: f32[4] = my::swap(new_x, None, 0.5)
              return x, result, new_x
            }
            """);
  }

  @Test
  void whatNothingElseReadsIsWrittenItself() {
    var text =
        """
        e: F4 = torch.ops.aten.empty.memory_format([4], dtype = torch.float32)
        h = torch.ops.higher_order.auto_functionalized(torch.ops.my.fill.default, out = e, x = x);  e = None
        new: F4 = h[1];  h = None
        """;
    assertThat(graph(X, text + "return (new,)"))
        .contains("  my::fill(e, x)\n  return e\n")
        .doesNotContain("clone");
    assertThat(graph(X, text + "old: F4 = torch.ops.aten.neg.default(e)\nreturn (new, old)"))
        .contains(
            "  new: f32[4] = aten::clone(e)\n  my::fill(new, x)\n  old: f32[4] = aten::neg(e)\n");
    assertThat(graph(X, text.replace("x = x", "x = e") + "return (new,)"))
        .contains("  new: f32[4] = aten::clone(e)\n  my::fill(new, e)\n");
    // A view keeps the old value alive.
    assertThat(
            graph(
                X,
                text.replace("h = t", "v: F4 = torch.ops.aten.view.default(e, [4])\nh = t")
                    + "return (new, v)"))
        .contains("  my::fill(new, x)\n  return new, v\n");
  }

  @Test
  void writtenListsAreCopiedOneByOne() {
    assertThat(
            graph(
                X + ", y: F4".replace("F4", F4),
                """
                h = torch.ops.higher_order.auto_functionalized(torch.ops.my.both.default, xs = [x, y], n = 2)
                a: F4 = h[1]
                list_1 = h[2];  h = None
                b: F4 = list_1[1];  list_1 = None
                return (a, b)
                """))
        .contains(
            """
              h_xs: f32[4] = aten::clone(x)
              h_xs_1: f32[4] = aten::clone(y)
              _, a: f32[4] = my::both([h_xs, h_xs_1], 2)
              return a, h_xs_1
            """);
  }

  @Test
  void theSecondVersionWritesViewsOfCopies() {
    assertThat(
            graph(
                "x: \"f32[4, 4][4, 1]cuda:0\"",
                """
                h = torch.ops.higher_order.auto_functionalized_v2(torch.ops.my.swap.default, by = 0.5, \
                _x_base_index = 0, _x_slice_dim = 0, _x_slice_start = 1, _x_slice_end = 2, \
                _y_base_index = 0, _y_size = (4,), _y_stride = (1,), _y_storage_offset = 12, _all_bases = [x])
                new: "f32[4, 4][4, 1]cuda:0" = h[1];  h = None
                return (x, new)
                """))
        .isEqualTo(
            """
            graph g(x: f32[4, 4]) {
              new: f32[4, 4] = aten::clone(x)
              h_x = aten::slice.Tensor(new, 0, 1, 2)
              h_y = aten::as_strided(new, [4], [1], 12)
              my::swap(h_x, h_y, 0.5)
              return x, new
            }
            """);
  }

  @Test
  void copiesHaveTheGapsOfTheirOriginals() {
    assertThat(
            graph(
                "x: \"f32[2, 3][8, 1]cuda:0\"",
                """
                h = torch.ops.higher_order.auto_functionalized_v2(torch.ops.my.swap.default, by = 0.5, \
                _x_base_index = 0, _x_size = (3,), _x_stride = (1,), _x_storage_offset = 8, _y_base_index = None, _all_bases = [x])
                r: "f32[3][1]cuda:0" = h[0];  h = None
                return (r,)
                """))
        .contains(
            """
              h_base_0: f32[2, 3][8, 1] = aten::clone(x)
              h_x = aten::as_strided(h_base_0, [3], [1], 8)
              r: f32[3] = my::swap(h_x, None, 0.5)
            """);
  }

  @Test
  void offsetsIntoStoragesThatStartElsewhereAreNotGuessed() {
    var graph =
        graph(
            "x: \"f32[8][1]cuda:0\"",
            """
            part: F4 = torch.ops.aten.slice.Tensor(x, 0, 4, 8)
            h = torch.ops.higher_order.auto_functionalized_v2(torch.ops.my.fill.default, x = x, \
            _out_base_index = 0, _out_size = (2,), _out_stride = (1,), _out_storage_offset = 6, _all_bases = [part])
            new: F4 = h[1];  h = None
            return (new,)
            """);
    assertThat(graph)
        .contains("higher_order::auto_functionalized_v2(\"torch.ops.my.fill.default\"");
  }

  @Test
  void outOperatorsWriteWhatTheyAreDescribed() {
    assertThat(
            graph(
                X,
                """
                h: F4 = torch.ops.higher_order.auto_functionalized_v2(torch.ops.my.into.out, x = x, \
                _out_size = (4,), _out_stride = (1,), _out_dtype = torch.float32, _out_device = device(type='cuda', index=0), \
                _all_bases = [])
                return (h,)
                """))
        .contains("h_out: f32[4] = aten::empty_strided([4], [1], dtype=torch.float32")
        .contains("h: f32[4] = my::into.out(x, out=h_out)\n");
  }

  @Test
  void withoutASchemaFunctionalizedOpsStayWhole() {
    var graph =
        graph(
            X,
            """
            h = torch.ops.higher_order.auto_functionalized(torch.ops.other.op.default, out = x, n = 1)
            new: F4 = h[1];  h = None
            i = torch.ops.higher_order.auto_functionalized(torch.ops.other.op.default, out = new, n = 2)
            newer: F4 = i[1];  i = None
            return (x, newer)
            """);
    assertThat(graph)
        .contains("new: f32[4] = higher_order::auto_functionalized(\"torch.ops.other.op.default\"");
    assertThat(warnings).extracting(Diagnostic::code).containsOnly(DiagnosticCode.OPAQUE_OP);
    assertThat(warnings)
        .extracting(Diagnostic::hint)
        .satisfiesExactly(
            one -> assertThat(one).contains("--declare FILE", "print(torch.ops.other.op.default"),
            two -> assertThat(two).doesNotContain("--declare"));
  }

  @Test
  void knowsWhatServingOpsWrite() {
    var graph =
        graph(
            X,
            """
            h = torch.ops.higher_order.auto_functionalized(torch.ops._C.fused_add_rms_norm.default, \
            input = x, residual = x, weight = x, epsilon = 1e-06)
            input_1: F4 = h[1]
            residual: F4 = h[2];  h = None
            return (input_1, residual)
            """);
    assertThat(graph)
        .contains(
            """
              input_1: f32[4] = aten::clone(x)
              residual: f32[4] = aten::clone(x)
              _C::fused_add_rms_norm(input_1, residual, x, 1e-06)
              return input_1, residual
            """);
    assertThat(warnings)
        .singleElement()
        .extracting(Diagnostic::message)
        .asString()
        .contains("vLLM's");
  }

  @Test
  void tokensGoAndTheirOpsStay() {
    assertThat(
            graph(
                "token: \"f32[0][1]cpu\", " + X,
                """
                e = torch.ops.higher_order.with_effects(token, torch.ops.my.log.default, x, 'x');  token = None
                t1: "f32[0][1]cpu" = e[0];  e = None
                e1 = torch.ops.higher_order.with_effects(t1, torch.ops.my.send.default, x);  t1 = None
                t2: "f32[0][1]cpu" = e1[0]
                sent: F4 = e1[1];  e1 = None
                e2 = torch.ops.higher_order.with_effects(t2, torch.ops.my.both.default, [x], 3);  t2 = None
                t3: "f32[0][1]cpu" = e2[0]
                second: F4 = e2[2];  e2 = None
                return (t3, sent, second)
                """))
        .isEqualTo(
            """
            graph g(token: f32[0], x: f32[4]) {
              my::log(x, "x")
              sent: f32[4] = my::send(x)
              _, second: f32[4] = my::both([x], 3)
              return token, sent, second
            }
            """);
  }

  /** Only AOTAutograd's generators are known to be in the same state in both graphs. */
  @Test
  void operatorsThatCannotHaveTheirStateAreUnknown() {
    assertThat(
            graph(
                X + ", state: \"u8[16][1]cpu\", generator",
                """
                g = torch.ops.higher_order.graphsafe_run_with_rng_state(torch.ops.aten.native_dropout.default, x, 0.5, True, rng_state = generator)
                getitem: F4 = g[0];  g = None
                n: F4 = torch.ops.higher_order.run_with_rng_state(state, torch.ops.my.noise.default, x, scale = 2.0)
                return (getitem, n)
                """))
        .contains(
            "getitem: f32[4] ="
                + " higher_order::run_with_rng_state(\"torch.ops.aten.native_dropout.default\", x,"
                + " 0.5, True)")
        .contains(
            "n: f32[4] = higher_order::run_with_rng_state.call_2(state,"
                + " \"torch.ops.my.noise.default\", x, scale=2.0)");
    assertThat(warnings)
        .extracting(Diagnostic::message)
        .filteredOn(message -> message.contains("cannot draw from the random state"))
        .hasSize(2);
  }

  @Test
  void dropoutComparesNumbersThatAreDrawnFirst() {
    assertThat(
            graph(
                X + ", state: \"u8[16][1]cpu\"",
                """
                r: F4 = torch.ops.higher_order.run_with_rng_state(state, torch.ops.aten.rand_like.default, x, pin_memory = False)
                d = torch.ops.higher_order.run_with_rng_state(state, torch.ops.aten.native_dropout.default, x, 0.75, True)
                getitem: F4 = d[0]
                getitem_1: "b8[4][1]cuda:0" = d[1];  d = None
                e: F4 = torch.ops.higher_order.run_with_rng_state(state, torch.ops.aten.dropout.default, x, 1.0, True)
                f: F4 = torch.ops.higher_order.run_with_rng_state(state, torch.ops.aten.dropout.default, x, 0.5, False)
                return (r, getitem, getitem_1, e, f)
                """))
        .contains(
            """
              r: f32[4] = aten::rand_like.generator(x, generator=state, pin_memory=False)
              d_drawn = aten::rand_like.generator(x, generator=state, dtype=torch.float32)
              getitem_1: b8[4] = aten::ge.Scalar(d_drawn, 0.75)
              d_left = aten::mul.Tensor(x, getitem_1)
              getitem: f32[4] = aten::mul.Tensor(d_left, 4.0)
              e_drawn = aten::rand_like.generator(x, generator=state, dtype=torch.float32)
              e_kept = aten::ge.Scalar(e_drawn, 1.0)
              e_left = aten::mul.Tensor(x, e_kept)
              e: f32[4] = aten::mul.Tensor(e_left, 0.0)
              f: f32[4] = aten::dropout(x, 0.5, False)
            """);
    assertThat(warnings).isEmpty();
  }

  /** Before each call, AOTAutograd sets the generator of the backward graph as the forward's. */
  @Test
  void forwardAndBackwardDrawTheSameNumbers() {
    for (var pass : List.of("fwd", "bwd")) {
      assertThat(
              graph(
                  X + ", %s_rng_state_0, %s_rng_state_1".formatted(pass, pass),
                  """
                  r: F4 = torch.ops.higher_order.graphsafe_run_with_rng_state(torch.ops.aten.rand.default, [4], dtype = torch.float32, device = device(type='cuda', index=0), pin_memory = False, rng_state = PASS_rng_state_0)
                  b: F4 = torch.ops.higher_order.graphsafe_run_with_rng_state(torch.ops.aten.bernoulli.p, x, 0.5, rng_state = PASS_rng_state_1)
                  return (r, b)
                  """
                      .replace("PASS", pass)))
          .contains("r: f32[4] = aten::rand.generator([4], generator=\"rng_state_0\", dtype=")
          .contains("b: f32[4] = aten::bernoulli.p(x, 0.5, generator=\"rng_state_1\")");
    }
    assertThat(warnings).isEmpty();
  }

  /** As PyTorch 2.11 prints a checkpointed layer; the size of the state has no value. */
  @Test
  void savedStatesAreWhatTheBackwardGraphDrawsFrom() {
    assertThat(
            graph(
                X,
                """
                run_and_save_rng_state = torch.ops.higher_order.run_and_save_rng_state(torch.ops.aten.rand.default, [4])
                getitem: "u8[16][1]cpu" = run_and_save_rng_state[0]
                getitem_1: F4 = run_and_save_rng_state[1];  run_and_save_rng_state = None
                both = torch.ops.higher_order.run_and_save_rng_state(torch.ops.aten.native_dropout.default, x, 0.5, True)
                getitem_2: "u8[16][1]cpu" = both[0]
                getitem_3 = both[1];  both = None
                getitem_4: F4 = getitem_3[0];  getitem_3 = None
                return (getitem_1, getitem_4, getitem, getitem_2)
                """))
        .isEqualTo(
            """
            graph g(x: f32[4]) {
              getitem: u8[16] = aten::randint(256, [16], dtype=torch.uint8)
              getitem_1: f32[4] = aten::rand.generator([4], generator=getitem)
              getitem_2: u8[16] = aten::randint(256, [16], dtype=torch.uint8)
              getitem_3_drawn = aten::rand_like.generator(x, generator=getitem_2, dtype=torch.float32)
              getitem_3_kept = aten::ge.Scalar(getitem_3_drawn, 0.5)
              getitem_3_left = aten::mul.Tensor(x, getitem_3_kept)
              getitem_4: f32[4] = aten::mul.Tensor(getitem_3_left, 2.0)
              return getitem_1, getitem_4, getitem, getitem_2
            }
            """);
    assertThat(warnings).isEmpty();
    assertThat(
            graph(
                X + ", state: \"u8[s26][1]cpu\"",
                """
                r: F4 = torch.ops.higher_order.run_with_rng_state(state, torch.ops.aten.rand.default, [4])
                return (r,)
                """))
        .contains("state: u8[16]", "r: f32[4] = aten::rand.generator([4], generator=state)");
  }

  @Test
  void attentionWithoutDropoutDrawsNothing() {
    var q = "q: \"bf16[1, 2, 8, 64][1024, 512, 64, 1]cuda:0\", state: \"u8[s26][1]cpu\"";
    var call =
        """
        a = torch.ops.higher_order.run_with_rng_state(state, torch.ops.aten._scaled_dot_product_cudnn_attention.default, q, q, q, None, True, DROPOUT, True)
        getitem: "bf16[1, 2, 8, 64][1024, 512, 64, 1]cuda:0" = a[0]
        return (getitem,)
        """;
    assertThat(graph(q, call.replace("DROPOUT", "0.0")))
        .contains("(q, q, q, None, True, 0.0, True)");
    assertThat(warnings).isEmpty();
    graph(q, call.replace("DROPOUT", "0.1"));
    assertThat(warnings)
        .singleElement()
        .asString()
        .contains("cannot draw from the random state", "run attention without dropout");
  }

  @Test
  void calledSubgraphsAreInlined() {
    var text =
        """
        class GraphModule(torch.nn.Module):
            def forward(self, x: F4, y: F4):
                sub = self.sub
                a = torch.ops.higher_order.invoke_subgraph(sub, 'sub', x, y)
                first: F4 = a[0]
                b = torch.ops.higher_order.invoke_subgraph(sub, 'sub', (first, x));  sub = None
                second: F4 = b[0]
                third: F4 = b[1];  a = b = None
                deps = self.deps
                mm: F4 = torch.ops.higher_order.control_deps((second,), deps, third);  deps = None
                split = torch.ops.higher_order.control_deps((mm,), self_split, x)
                half: "f32[2][1]cuda:0" = split[1]
                return (mm, half)
            class sub(torch.nn.Module):
                def forward(self, a: F4, b: F4):
                    inner = self.inner
                    neg = torch.ops.higher_order.invoke_subgraph(inner, 'inner', a);  inner = None
                    got: F4 = neg[0]
                    mul: F4 = torch.ops.aten.mul.Tensor(got, b)
                    return (mul, b)
                class inner(torch.nn.Module):
                    def forward(self, a: F4):
                        neg: F4 = torch.ops.aten.neg.default(a)
                        return (neg,)
            class deps(torch.nn.Module):
                def forward(self, arg_0):
                    exp: F4 = torch.ops.aten.exp.default(arg_0)
                    return exp
            class subgraph_split(torch.nn.Module):
                def forward(self, arg_0):
                    split = torch.ops.aten.split.Tensor(arg_0, 2)
                    return split
        """
            .replace(
                "split = torch.ops.higher",
                "self_split = self.subgraph_split\n        split = torch.ops.higher")
            .replace("F4", F4);
    assertThat(imported(text))
        .isEqualTo(
            """
            graph g(x: f32[4], y: f32[4]) {
              got: f32[4] = aten::neg(x)
              first: f32[4] = aten::mul.Tensor(got, y)
              got_1: f32[4] = aten::neg(first)
              second: f32[4] = aten::mul.Tensor(got_1, x)
              mm: f32[4] = aten::exp(x)
              _, half: f32[2] = aten::split.Tensor(x, 2)
              return mm, half
            }
            """);
    assertThat(warnings).isEmpty();
  }

  @Test
  void kernelsOfTheUserMayWriteWhatTheyAreGiven() {
    var graph =
        graph(
            X + ", y: F4".replace("F4", F4),
            """
            k = torch.ops.higher_order.triton_kernel_wrapper_functional(kernel_idx = 0, constant_args_idx = 1, \
            grid = [(1, 1, 1)], tma_descriptor_metadata = {}, kwargs = {'in_ptr': x, 'out_ptr': y, 'n': 4}, \
            tensors_to_clone = ['out_ptr'])
            out: F4 = k['out_ptr'];  k = None
            m = torch.ops.higher_order.triton_kernel_wrapper_mutation(kernel_idx = 0, constant_args_idx = 1, \
            grid = [(1, 1, 1)], tma_descriptor_metadata = {}, kwargs = {'in_ptr': x, 'out_ptr': y});  m = None
            return (out, y)
            """);
    assertThat(graph)
        .contains("  out: f32[4] = aten::clone(y)\n  higher_order::triton_kernel_wrapper_mutation(")
        .contains("in_ptr=x, kernel_idx=0, n=4, out_ptr=out)")
        .contains("out_ptr=y)\n  return out, y\n");
  }

  @Test
  void scatterUponAConstantIsTwoOps() {
    assertThat(
            graph(
                "at: \"i64[3, 1][1, 1]cuda:0\"",
                """
                s: "f32[3, 5][5, 1]cuda:0" = torch__inductor_fx_passes_post_grad_scatter_upon_const_tensor(\
                shape = [3, 5], background_val = 0, dtype = torch.float32, dim = 1, selector = at, val = -1.0)
                return (s,)
                """))
        .contains(
            """
              s_background: f32[3, 5] = aten::full([3, 5], 0, dtype=torch.float32)
              s: f32[3, 5] = aten::scatter.value(s_background, 1, at, -1.0)
            """);
  }

  @Test
  void flexAttentionIsPlannedWhole() {
    var text =
        """
        class GraphModule(torch.nn.Module):
            def forward(self, q: F4, mask: "i32[1][1]cuda:0"):
                score = self.score
                f = torch.ops.higher_order.flex_attention(q, q, q, score, (4, mask, 128, score), 0.125, {'A': False}, (), (mask,))
                out: F4 = f[0];  f = None
                return (out,)
            class score(torch.nn.Module):
                def forward(self, s: "f32[][]cuda:0"):
                    return s
        """
            .replace("F4", F4);
    assertThat(imported(text))
        .contains(
            "out: f32[4] = higher_order::flex_attention(q, q, q, \"score\", [4, mask, 128,"
                + " \"score\"], 0.125");
  }

  @Test
  void constantsOfTheModuleAreInputsBehindTheOthers() {
    assertThat(
            graph(
                X,
                """
                _tensor_constant0 = self._tensor_constant0
                c: F4 = torch.ops.aten.lift_fresh_copy.default(_tensor_constant0);  _tensor_constant0 = None
                weight: F4 = getattr(self.layers, "0").weight
                _tensor_constant0_1 = self._tensor_constant0
                a: F4 = torch.ops.aten.add.Tensor(c, weight)
                b: F4 = torch.ops.aten.add.Tensor(a, _tensor_constant0_1)
                return (b,)
                """))
        .startsWith("graph g(x: f32[4], _tensor_constant0: f32[4], weight: f32[4]) {")
        .contains("b: f32[4] = aten::add.Tensor(a, _tensor_constant0)");
    assertThat(warnings)
        .extracting(Diagnostic::message)
        .hasSize(2)
        .first()
        .asString()
        .contains("it becomes the input '_tensor_constant0'");
  }

  @Test
  void listsOfCompiledAutogradAreItsArguments() {
    assertThat(
            imported(
                """
                def forward(self, inputs, sizes, hooks):
                    grad: "f32[]" = inputs[0]
                    y: "f32[4]" = inputs[2];  inputs = None
                    expand: "f32[4]" = torch.ops.aten.expand.default(grad, [4])
                    mul: "f32[4]" = torch.ops.aten.mul.Tensor(expand, y)
                    return [mul]
                """))
        .startsWith("graph g(grad: f32[], inputs_1: None, y: f32[4]) {");
  }

  /** Each class calls the one in it twice. */
  @Test
  @Timeout(30)
  void fewLinesThatStandForTooManyStatementsAreRefused() {
    var text = new StringBuilder();
    var indent = "";
    for (int depth = 0; depth < 26; depth++) {
      text.append(
          """
          class s%1$s(torch.nn.Module):
              def forward(self, x: F4):
                  s = self.s%2$s
                  i = torch.ops.higher_order.invoke_subgraph(s, 'a', x)
                  a: F4 = i[0]
                  j = torch.ops.higher_order.invoke_subgraph(s, 'a', a)
                  b: F4 = j[0]
                  return (b,)
          """
              .formatted(depth, depth + 1)
              .replace("F4", F4)
              .indent(indent.length()));
      indent += "    ";
    }
    text.append(
        """
        class s26(torch.nn.Module):
            def forward(self, x: F4):
                n: F4 = torch.ops.aten.neg.default(x)
                return (n,)
        """
            .replace("F4", F4)
            .indent(indent.length()));

    assertThatThrownBy(() -> imported(text.toString()))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("the graph has more than 1048576");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      textBlock =
          """
          sub = self.sub; a = torch.ops.higher_order.cond(x, sub, sub, (x,)) | cond chooses at run time which ops to run
          _torchbind_obj0 = self._torchbind_obj0; a = torch.ops.my.op.default(x, _torchbind_obj0) | this is a TorchBind object, such as a handle of symmetric memory
          sub = self.gone; a = torch.ops.higher_order.while_loop(sub, sub, (x,)) | while_loop chooses at run time
          sub = self.sub; a = torch.ops.higher_order.mystery(sub, x)          | mystery calls another graph
          sub = self.gone; a = torch.ops.higher_order.invoke_subgraph(sub, 'a', x) | this is a constant or a subgraph of the module
          sub = self.sub; a = torch.ops.higher_order.invoke_subgraph(sub, 'a', x, x) | the subgraph takes 1 argument, not 2
          a = torch.ops.higher_order.with_effects(x, self.f, x)               | with_effects calls another graph
          """)
  void saysWhatCannotBePlanned(String lines, String message) {
    var text =
        """
        class GraphModule(torch.nn.Module):
            def forward(self, x: F4):
                LINES
                return (x,)
            class sub(torch.nn.Module):
                def forward(self, x: F4):
                    return (x,)
        """
            .replace("LINES", lines.replace("; ", "\n        "))
            .replace("F4", F4);
    assertThatThrownBy(() -> imported(text))
        .hasMessageContaining(message)
        .satisfies(e -> assertThat(String.valueOf(e.getMessage())).containsOnlyOnce("error["));
  }

  @Test
  void objectsAreNotPlanned() {
    assertThatThrownBy(
            () ->
                imported(
                    """
                    def forward(self, obj, x: F4):
                        a = torch.ops.my.op.default(x, obj)
                        return (a,)
                    """
                        .replace("F4", F4)))
        .hasMessageContaining("input 'obj' is printed without a type: it is an object");
  }

  @Test
  void hooksAreNotPlanned() {
    assertThatThrownBy(
            () ->
                imported(
                    """
                    def forward(self, inputs, sizes, hooks):
                        grad: "f32[]" = inputs[0]
                        getitem = hooks[0]
                        call = torch__dynamo_external_utils_call_hook(getitem, grad)
                        neg: "f32[]" = torch.ops.aten.neg.default(grad)
                        return [neg]
                    """))
        .hasMessageContaining("calls hooks")
        .hasMessageContaining("TORCH_LOGS=post_grad_graphs");
  }
}
