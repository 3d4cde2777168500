package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.cuda.DeviceStep;
import dev.symplan.codegen.cuda.DeviceStep.Attention;
import dev.symplan.codegen.cuda.DeviceStep.AttentionBackward;
import dev.symplan.codegen.cuda.DeviceStep.Await;
import dev.symplan.codegen.cuda.DeviceStep.Convolution;
import dev.symplan.codegen.cuda.DeviceStep.Copy;
import dev.symplan.codegen.cuda.DeviceStep.CopyRows;
import dev.symplan.codegen.cuda.DeviceStep.HopperLaunch;
import dev.symplan.codegen.cuda.DeviceStep.Launch;
import dev.symplan.codegen.cuda.DeviceStep.Mark;
import dev.symplan.codegen.cuda.DeviceStep.Nccl;
import dev.symplan.codegen.cuda.DeviceStep.Product;
import dev.symplan.codegen.cuda.DeviceStep.Share;
import dev.symplan.planner.plan.StreamKind;
import dev.symplan.runtime.profile.Profile.Activity;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.Collectors;
import org.bytedeco.cuda.cudart.CUevent_st;
import org.bytedeco.cuda.global.cudart;

/**
 * One rank's program in a graph that takes the time before and after each instruction, by events
 * that are nodes of the graph. They keep a kernel from being started while the one before it ends,
 * so that the sum is more than a run takes.
 *
 * <p>Of libraries' calls, the kernels are those that the graph got by them.
 */
final class TimedGraph {

  /**
   * @param shares the shares of several instructions; empty if it was one
   */
  private record Section(
      StreamKind stream,
      String label,
      String kernel,
      ImmutableList<Share> shares,
      CUevent_st begin,
      CUevent_st end) {

    /**
     * {@return an activity for each instruction, which has a part of the time as large as what it
     * moves}
     */
    List<Activity> activities(int rank, double from, double to) {
      if (shares.isEmpty()) {
        return List.of(new Activity(rank, stream, label, kernel, from, to));
      }
      double all = shares.stream().mapToLong(Share::bytes).sum();
      var activities = new ArrayList<Activity>();
      long before = 0;
      for (var share : shares) {
        long behind = before + share.bytes();
        activities.add(
            new Activity(
                rank,
                stream,
                share.label(),
                kernel,
                from + (to - from) * (before / all),
                from + (to - from) * (behind / all)));
        before = behind;
      }
      return activities;
    }
  }

  private final Gpu gpu;
  private final Check check;
  private final List<Section> sections = new ArrayList<>();
  private final CUevent_st zero;
  private final CUevent_st one;
  private final int graph;
  private double twoEvents;

  /** To be made by the GPU's thread, on all ranks at once. */
  TimedGraph(Gpu gpu) {
    this.gpu = gpu;
    this.check = gpu.check();
    zero = gpu.event(cudart.cudaEventDefault);
    one = gpu.event(cudart.cudaEventDefault);
    graph =
        gpu.captureStepwise(
            () -> {
              record(zero, StreamKind.COMPUTE);
              record(one, StreamKind.COMPUTE);
            },
            this::add);
  }

  private void record(CUevent_st event, StreamKind stream) {
    check.runtime(
        cudart.cudaEventRecordWithFlags(event, gpu.stream(stream), cudart.cudaEventRecordExternal),
        "cudaEventRecordWithFlags");
  }

  private void add(DeviceStep step, Runnable enqueue) {
    var label = label(step);
    if (label.isEmpty()) {
      enqueue.run();
      return;
    }
    var begin = gpu.event(cudart.cudaEventDefault);
    var end = gpu.event(cudart.cudaEventDefault);
    record(begin, step.stream());
    enqueue.run();
    var kernel = kernel(step);
    record(end, step.stream());
    var shares =
        step instanceof Launch launch
            ? launch.shares()
            : step instanceof HopperLaunch both
                ? both.launch().shares()
                : ImmutableList.<Share>of();
    sections.add(new Section(step.stream(), label.get(), kernel, shares, begin, end));
  }

  /** {@return the name of a step; empty for one that only orders streams} */
  static Optional<String> label(DeviceStep step) {
    return switch (step) {
      case Launch launch -> Optional.of(launch.label());
      case HopperLaunch both -> Optional.of(both.launch().label());
      case Copy copy -> Optional.of(copy.label());
      case CopyRows copy -> Optional.of(copy.label());
      case Product product -> Optional.of(product.label());
      case Attention attention -> Optional.of(attention.label());
      case AttentionBackward attention -> Optional.of(attention.label());
      case Convolution convolution -> Optional.of(convolution.label());
      case Nccl nccl -> Optional.of(nccl.label());
      case Mark _, Await _ -> Optional.empty();
    };
  }

  private String kernel(DeviceStep step) {
    return switch (step) {
      case Launch launch ->
          "generated, %s blocks of %s threads%s"
              .formatted(
                  launch.blocks(),
                  launch.threads(),
                  launch.shares().isEmpty()
                      ? ""
                      : launch.shares().stream()
                          .map(Share::label)
                          .collect(Collectors.joining(" and ", ", one launch for ", "")));
      case HopperLaunch both -> captured(both.stream(), "generated");
      case Copy copy -> "copy engine, %s bytes".formatted(copy.bytes());
      case CopyRows copy -> "copy engine, %s rows of %s bytes".formatted(copy.rows(), copy.bytes());
      case Product product -> captured(product.stream(), "cublasLtMatmul");
      case Attention _, AttentionBackward _ -> captured(step.stream(), "attention");
      case Convolution _ -> captured(step.stream(), "convolution");
      case Nccl nccl ->
          captured(
              nccl.stream(),
              nccl.calls().stream()
                      .map(call -> call.function().name().toLowerCase(Locale.ROOT))
                      .distinct()
                      .collect(Collectors.joining("+", "nccl ", ""))
                  + (nccl.windows() ? " with windows" : ""));
      case Mark _, Await _ -> "";
    };
  }

  private String captured(StreamKind stream, String call) {
    var names = CapturedKernels.last(gpu.stream(stream));
    return names.isEmpty() ? call + " (kernel unknown)" : String.join(" ", names);
  }

  /**
   * {@return the times of all instructions, on a clock of the GPU's}
   *
   * @param before how often the program runs first, right before
   */
  ImmutableList<Activity> run(int before) {
    for (int i = 0; i < before; i++) {
      gpu.launch(Gpu.RUN);
    }
    gpu.launch(graph);
    gpu.await();
    twoEvents = micros(zero, one);
    var activities = new ArrayList<Activity>();
    for (var section : sections) {
      double begin = micros(zero, section.begin());
      double end = begin + micros(section.begin(), section.end());
      section.activities(check.rank(), begin, end).forEach(activity -> merge(activities, activity));
      destroy(section.begin());
      destroy(section.end());
    }
    destroy(zero);
    destroy(one);
    return ImmutableList.copyOf(activities);
  }

  /** Steps of one instruction have the same label and are next to each other. */
  private static void merge(List<Activity> activities, Activity next) {
    if (!activities.isEmpty()
        && activities.getLast().label().equals(next.label())
        && activities.getLast().stream() == next.stream()) {
      var last = activities.removeLast();
      activities.add(
          new Activity(
              last.rank(),
              last.stream(),
              last.label(),
              last.kernel().equals(next.kernel())
                  ? last.kernel()
                  : last.kernel() + ", " + next.kernel(),
              last.begin(),
              next.end()));
    } else {
      activities.add(next);
    }
  }

  private double micros(CUevent_st from, CUevent_st to) {
    var millis = new float[1];
    check.runtime(cudart.cudaEventElapsedTime(millis, from, to), "cudaEventElapsedTime");
    return millis[0] * 1000.0;
  }

  private void destroy(CUevent_st event) {
    check.runtime(cudart.cudaEventDestroy(event), "cudaEventDestroy");
  }

  /** {@return how the times were taken; known after the run} */
  String method() {
    return String.format(
        Locale.ROOT,
        "one run of a CUDA graph with an event before and after each step, which alone take %.1f"
            + " µs; GPUs' clocks brought together at the end of the first collective",
        twoEvents);
  }
}
