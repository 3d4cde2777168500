package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Address;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.DependentLaunches;
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
import dev.symplan.codegen.cuda.DeviceStep.NcclCall;
import dev.symplan.codegen.cuda.DeviceStep.Product;
import dev.symplan.codegen.cuda.Kernel;
import dev.symplan.codegen.cuda.KernelArgument;
import dev.symplan.ir.DType;
import dev.symplan.ir.op.ReduceOp;
import dev.symplan.planner.plan.StreamKind;
import dev.symplan.runtime.cuda.Architecture.Target;
import dev.symplan.runtime.cuda.cudnn.CudnnCalls;
import dev.symplan.runtime.cuda.cudnn.CudnnCalls.Prepared;
import dev.symplan.runtime.cuda.library.Libraries;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import java.util.function.LongConsumer;
import org.bytedeco.cuda.cudart.CUfunc_st;
import org.bytedeco.cuda.cudart.CUlaunchAttribute;
import org.bytedeco.cuda.cudart.CUlaunchConfig;
import org.bytedeco.cuda.cudart.CUmod_st;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.cuda.global.nccl;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.LongPointer;
import org.bytedeco.javacpp.PointerPointer;

/** Turns a rank's steps into calls with all arguments built. */
final class Preparation {

  private final Gpu gpu;
  private final Peers peers;
  private final Locations locations;
  private final Communicators communicators;
  private final Duration timeout;
  private final Check check;
  private final Architecture architecture;
  private final Map<Target, CUfunc_st> functions = new HashMap<>();
  private final CUlaunchAttribute beginsEarly = beginsEarly();
  private final LibraryWorkspace workspace;
  private final CublasProducts products;
  private Optional<CudnnCalls> cudnn = Optional.empty();

  Preparation(
      Gpu gpu, Peers peers, Communicators communicators, ProductChoices choices, Duration timeout) {
    this.gpu = gpu;
    this.peers = peers;
    this.locations = new Locations(gpu.check().rank(), gpu.memory(), peers);
    this.communicators = communicators;
    this.timeout = timeout;
    this.check = gpu.check();
    this.workspace = new LibraryWorkspace(gpu);
    this.products = new CublasProducts(gpu, workspace, locations, choices);
    gpu.onClose(beginsEarly::close);
    this.architecture = Architecture.of(gpu.device(), check);
  }

  private static CUlaunchAttribute beginsEarly() {
    var attribute = new CUlaunchAttribute();
    attribute.id(cudart.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
    attribute.value().programmaticStreamSerializationAllowed(1);
    return attribute;
  }

  /** {@return the actions that put the steps into their streams, one by one} */
  ImmutableList<Runnable> steps(ImmutableList<DeviceStep> steps) {
    var own = architecture.isHopper() ? steps : DependentLaunches.elsewhere(steps);
    var prepared = own.stream().map(this::step).collect(ImmutableList.toImmutableList());
    workspace.allocate();
    return prepared;
  }

  private Runnable step(DeviceStep given) {
    return switch (given) {
      case Launch launch -> launch(launch, architecture.target(launch));
      case HopperLaunch both ->
          architecture.isHopper()
              ? launch(both.launch(), architecture.target(both))
              : all(both.otherwise());
      case Copy copy -> copy(copy);
      case CopyRows copy -> copyRows(copy);
      case Product product ->
          products
              .prepare(product)
              .orElseGet(() -> all(product.scales().orElseThrow().otherwise()));
      case Attention step ->
          byCudnn(0, cudnn -> cudnn.prepare(step, locations::pointer))
              .orElseGet(() -> all(step.otherwise()));
      case AttentionBackward step ->
          byCudnn(0, cudnn -> cudnn.prepare(step, locations::pointer))
              .orElseGet(() -> all(step.otherwise()));
      case Convolution step ->
          byCudnn(step.scratchBytes(), cudnn -> cudnn.prepare(step, this::pointer))
              .orElseGet(() -> all(step.otherwise()));
      case Nccl call -> nccl(call);
      case Mark(var stream, int index) -> {
        var event = gpu.event(index, given);
        var on = gpu.stream(stream);
        yield () -> check.runtime(cudart.cudaEventRecord(event, on), "cudaEventRecord");
      }
      case Await(var stream, int index) -> {
        var event = gpu.event(index, given);
        var on = gpu.stream(stream);
        yield () -> check.runtime(cudart.cudaStreamWaitEvent(on, event, 0), "cudaStreamWaitEvent");
      }
    };
  }

  private Runnable all(ImmutableList<DeviceStep> steps) {
    var prepared = steps.stream().map(this::step).toList();
    return () -> prepared.forEach(Runnable::run);
  }

  /**
   * {@return the action of cuDNN; empty without cuDNN, or where it refuses}
   *
   * @param kept bytes at the beginning of the workspace that it leaves alone
   */
  private Optional<Runnable> byCudnn(long kept, Function<CudnnCalls, Optional<Prepared>> prepare) {
    if (!Libraries.hasCudnn()) {
      return Optional.empty();
    }
    return check
        .cudnn(() -> prepare.apply(cudnn()))
        .map(
            prepared -> {
              workspace.reserve(kept + prepared.workspaceBytes());
              return () -> call(prepared, kept);
            });
  }

  private void call(Prepared prepared, long kept) {
    check.cudnn(
        () -> {
          prepared.call().accept(workspace.memory().address() + kept);
          return true;
        });
  }

  private CudnnCalls cudnn() {
    return cudnn.orElseGet(
        () -> {
          var made =
              new CudnnCalls(gpu.device(), gpu.stream(StreamKind.COMPUTE), DevicePointer::new);
          gpu.onClose(made::close);
          cudnn = Optional.of(made);
          return made;
        });
  }

  private Runnable launch(Launch launch, Target target) {
    var function = function(launch, target);
    var words = new LongPointer(launch.words().stream().mapToLong(KernelArgument::words).sum());
    int index = 0;
    for (var word : launch.words()) {
      put(word, launch, words, index);
      index += word.words();
    }
    var arguments = new PointerPointer<LongPointer>(1).put(0, words);
    // The array of pointers does not keep what it points to.
    gpu.onClose(words::close);
    var config =
        new CUlaunchConfig()
            .gridDimX(launch.blocks())
            .gridDimY(1)
            .gridDimZ(1)
            .blockDimX(launch.threads())
            .blockDimY(1)
            .blockDimZ(1)
            .sharedMemBytes(launch.sharedBytes())
            .hStream(gpu.stream(launch.stream()))
            .attrs(beginsEarly);
    gpu.onClose(config::close);
    boolean dependent = launch.dependent() && architecture.hasDependentLaunches();
    var call = "the launch for '%s'".formatted(launch.label());
    return () -> {
      config.numAttrs(dependent && !gpu.isStepwise() ? 1 : 0);
      check.driver(
          cudart.cuLaunchKernelEx(config, function, arguments, (PointerPointer<?>) null), call);
    };
  }

  private CUfunc_st function(Launch launch, Target target) {
    var function = functions.computeIfAbsent(target, this::load);
    if (launch.sharedBytes() > 0) {
      check.driver(
          cudart.cuFuncSetAttribute(
              function,
              cudart.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
              launch.sharedBytes()),
          "cuFuncSetAttribute");
    }
    return function;
  }

  private CUfunc_st load(Target target) {
    var module = new CUmod_st();
    try (var code = new BytePointer(KernelCompiler.compile(target, check))) {
      check.driver(cudart.cuModuleLoadData(module, code), "cuModuleLoadData");
    }
    gpu.onClose(() -> check.driver(cudart.cuModuleUnload(module), "cuModuleUnload"));
    var function = new CUfunc_st();
    check.driver(cudart.cuModuleGetFunction(function, module, Kernel.ENTRY), "cuModuleGetFunction");
    return function;
  }

  private void put(KernelArgument word, Launch launch, LongPointer words, int index) {
    switch (word) {
      case KernelArgument.Number(long value) -> words.put(index, value);
      case KernelArgument.Memory(var address, long bytes) ->
          follow(address, bytes, at -> words.put(index, at));
      case KernelArgument.TensorMap map -> {
        var encoder = new TensorMapEncoder(check, map, launch.label());
        locations.follow(
            map.address(), at -> words.position(index).put(encoder.encode(at)).position(0));
      }
      case KernelArgument.Multicast(var members, long offset, long _) ->
          words.put(index, peers.multicast(members) + offset);
      case KernelArgument.Flags(int pad, int rank) -> words.put(index, peers.flags(rank, pad));
      case KernelArgument.Meetings(int pad) -> words.put(index, gpu.memory().meetings(pad));
      case KernelArgument.Failure _ ->
          words.put(index, gpu.memory().failures().watch(launch.label()));
      case KernelArgument.Timeout _ -> words.put(index, timeout.toNanos());
    }
  }

  /** Calls with an address as soon as it is known, and again when it is another one. */
  private void follow(Address address, long bytes, LongConsumer use) {
    if (address.isScratch()) {
      workspace.reserve(address.offset() + bytes);
      workspace.follow(at -> use.accept(at + address.offset()));
    } else {
      locations.follow(address, use);
    }
  }

  private DevicePointer pointer(Address address, long bytes) {
    var pointer = new DevicePointer(0);
    follow(address, bytes, pointer::moveTo);
    return pointer;
  }

  private DevicePointer pointer(TensorRef ref) {
    return pointer(Address.of(check.rank(), ref), ref.type().storageBytes());
  }

  private Runnable copy(Copy copy) {
    var from = pointer(copy.from(), copy.bytes());
    var to = pointer(copy.to(), copy.bytes());
    var stream = gpu.stream(copy.stream());
    var call = "the copy for '%s'".formatted(copy.label());
    return () ->
        check.runtime(
            cudart.cudaMemcpyAsync(to, from, copy.bytes(), cudart.cudaMemcpyDefault, stream), call);
  }

  private Runnable copyRows(CopyRows copy) {
    var from = locations.pointer(copy.from());
    var to = locations.pointer(copy.to());
    var stream = gpu.stream(copy.stream());
    var call = "the copy of rows for '%s'".formatted(copy.label());
    return () ->
        check.runtime(
            cudart.cudaMemcpy2DAsync(
                to,
                copy.toPitch(),
                from,
                copy.fromPitch(),
                copy.bytes(),
                copy.rows(),
                cudart.cudaMemcpyDefault,
                stream),
            call);
  }

  private Runnable nccl(Nccl step) {
    var calls =
        step.calls().stream()
            .map(call -> nccl(step, call))
            .collect(ImmutableList.toImmutableList());
    if (calls.size() == 1) {
      return calls.getFirst();
    }
    return () -> {
      check.nccl(nccl.ncclGroupStart(), "ncclGroupStart");
      calls.forEach(Runnable::run);
      check.nccl(nccl.ncclGroupEnd(), "the collective '%s'".formatted(step.label()));
    };
  }

  private Runnable nccl(Nccl step, NcclCall call) {
    var communicator = communicators.of(step);
    var stream = gpu.stream(step.stream());
    var from = locations.pointer(call.from());
    var to = locations.pointer(call.to());
    int type = ncclType(call.dtype());
    long count = call.count();
    int peer = call.peer();
    var name = "the collective '%s'".formatted(step.label());
    return switch (call.function()) {
      case ALL_REDUCE -> {
        int op = ncclOp(call.reduceOp().orElseThrow());
        yield () ->
            check.nccl(nccl.ncclAllReduce(from, to, count, type, op, communicator, stream), name);
      }
      case REDUCE_SCATTER -> {
        int op = ncclOp(call.reduceOp().orElseThrow());
        yield () ->
            check.nccl(
                nccl.ncclReduceScatter(from, to, count, type, op, communicator, stream), name);
      }
      case ALL_GATHER ->
          () -> check.nccl(nccl.ncclAllGather(from, to, count, type, communicator, stream), name);
      case ALL_TO_ALL ->
          () -> check.nccl(nccl.ncclAlltoAll(from, to, count, type, communicator, stream), name);
      case BROADCAST ->
          () ->
              check.nccl(
                  nccl.ncclBroadcast(from, to, count, type, peer, communicator, stream), name);
      case SEND ->
          () -> check.nccl(nccl.ncclSend(from, count, type, peer, communicator, stream), name);
      case RECEIVE ->
          () -> check.nccl(nccl.ncclRecv(to, count, type, peer, communicator, stream), name);
    };
  }

  private static int ncclOp(ReduceOp reduceOp) {
    return switch (reduceOp) {
      case SUM -> nccl.ncclSum;
      case PRODUCT -> nccl.ncclProd;
      case MAX -> nccl.ncclMax;
      case MIN -> nccl.ncclMin;
      case AVG -> nccl.ncclAvg;
      case BAND, BOR, BXOR -> throw new IllegalArgumentException(reduceOp.text());
    };
  }

  private static int ncclType(DType dtype) {
    return switch (dtype) {
      case F64 -> nccl.ncclFloat64;
      case F32 -> nccl.ncclFloat32;
      case F16 -> nccl.ncclFloat16;
      case BF16 -> nccl.ncclBfloat16;
      case I64 -> nccl.ncclInt64;
      case I32 -> nccl.ncclInt32;
      case I8 -> nccl.ncclInt8;
      case U64 -> nccl.ncclUint64;
      case U32 -> nccl.ncclUint32;
      case U8 -> nccl.ncclUint8;
      default -> throw new IllegalArgumentException(dtype.shortName());
    };
  }
}
