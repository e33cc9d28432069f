/**
 * The workers: started when an image is first needed, few, fed from one bounded queue for the whole process, and ended
 * when there was nothing to do for a while.
 */
import { GatewayError } from "../errors.ts";
import type { FromWorker, Job, JobResults, Outcome, ToWorker } from "./codec_messages.ts";

/** A core is left to the event loop; a second worker is for machines that have one to spare. */
const MOST_WORKERS = navigator.hardwareConcurrency > 2 ? 2 : 1;
/**
 * Most pixels of the jobs that run at one time, unless one alone has more: the largest upload and the largest image
 * that is made of it. A pixel takes up to 25 bytes of memory while it is decoded or encoded.
 */
const MOST_PIXELS_AT_ONCE = 25_165_824;
/** Pixels after which a worker is ended: V8 keeps the memory of WebAssembly that is not used any more for long. */
const RENEWAL_PIXELS = 4_194_304;
/** Longest queue. */
const MOST_WAITING = 256;
/** Time after which whoever is refused may come again, in milliseconds. */
const RETRY_MS = 5_000;
/** Longest time for one job, in milliseconds: files can be made that take hours to decode. */
const MOST_JOB_MS = 120_000;
/** Time that a worker without work is kept, in milliseconds. */
const IDLE_MS = 15_000;

/** Rights of a worker: it reads its own modules and one variable, which a package looks for. */
const PERMISSIONS: Deno.PermissionOptionsObject = {
  read: "inherit",
  ffi: false,
  env: ["IMAGESCRIPT_WASM_SIMD"],
  import: false,
  net: false,
  run: false,
  sys: false,
  write: false,
};

/** What goes along with a job. */
export interface JobOptions {
  /** Ends the job; it rejects with the signal's reason. */
  signal?: AbortSignal;
  /** Files that the job needs. Each is copied when the worker comes to it. */
  files?: readonly Uint8Array<ArrayBuffer>[];
  /** Most pixels that it has in memory at one time. */
  pixels: number;
  /** Parts of the job that the worker takes over, and that are gone here. */
  transfer?: Transferable[];
}

interface Task {
  job: Job;
  files: readonly Uint8Array<ArrayBuffer>[];
  pixels: number;
  transfer: Transferable[];
  settle(answer: Outcome | { thrown: unknown }): void;
}

interface Slot {
  worker: Worker;
  /** Pixels of all its jobs. */
  pixels: number;
  task?: Task;
  timer?: ReturnType<typeof setTimeout>;
}

const waiting: Task[] = [];
const slots = new Set<Slot>();

/**
 * Has a job done by a worker, in the order they come.
 * @throws {GatewayError} what the job failed with; `overloaded` where too many wait; `timeout` where it takes too long
 */
export function runJob<T extends Job["type"]>(
  job: Extract<Job, { type: T }>,
  { signal, files = [], pixels, transfer = [] }: JobOptions,
): Promise<JobResults[T]> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    if (waiting.length >= MOST_WAITING) {
      return reject(new GatewayError("overloaded", "Too many images are being made", { retryAfterMs: RETRY_MS }));
    }
    const task: Task = {
      job,
      files,
      pixels,
      transfer,
      settle(answer) {
        signal?.removeEventListener("abort", abort);
        if ("thrown" in answer) reject(answer.thrown);
        else if ("value" in answer) resolve(answer.value as JobResults[T]);
        else reject(toError(answer.error));
      },
    };
    const abort = () => drop(task, signal?.reason);
    signal?.addEventListener("abort", abort, { once: true });
    waiting.push(task);
    serve();
  });
}

/** Ends the workers that have nothing to do, at once instead of after a while. */
export function endIdleWorkers(): void {
  for (const slot of slots) if (slot.task === undefined) end(slot);
}

function toError({ kind, message, param, cause }: Extract<Outcome, { error: unknown }>["error"]): GatewayError {
  return new GatewayError(kind, message, { ...(param !== undefined && { param }), cause });
}

/** Takes a task away. A worker cannot be interrupted, so one that is at it ends with it. */
function drop(task: Task, reason: unknown): void {
  const at = waiting.indexOf(task);
  if (at >= 0) waiting.splice(at, 1);
  for (const slot of slots) if (slot.task === task) end(slot);
  task.settle({ thrown: reason });
  // One signal may end many tasks: no worker is started for one that is about to be dropped as well.
  queueMicrotask(serve);
}

/** Gives waiting tasks to workers that are free, and starts workers up to their number, while there is memory for it. */
function serve(): void {
  for (let [task] = waiting; task !== undefined; [task] = waiting) {
    const running = [...slots].flatMap((slot) => slot.task ?? []);
    const pixels = running.reduce((sum, { pixels }) => sum + pixels, task.pixels);
    if (running.length > 0 && pixels > MOST_PIXELS_AT_ONCE) return;
    const free = [...slots].find((slot) => slot.task === undefined) ??
      (slots.size < MOST_WORKERS ? start() : undefined);
    if (free === undefined) return;
    waiting.shift();
    give(task, free);
  }
}

function give(task: Task, slot: Slot): void {
  slot.task = task;
  slot.pixels += task.pixels;
  clearTimeout(slot.timer);
  slot.timer = setTimeout(
    () => drop(task, new GatewayError("timeout", `Cannot make the image within ${MOST_JOB_MS / 1000} seconds`)),
    MOST_JOB_MS,
  );
  try {
    slot.worker.postMessage({ job: task.job } satisfies ToWorker, task.transfer);
  } catch (thrown) {
    drop(task, thrown);
  }
}

function start(): Slot {
  const worker = new Worker(new URL("./codec_worker.ts", import.meta.url), {
    type: "module",
    name: "images",
    deno: { permissions: PERMISSIONS },
  });
  const slot: Slot = { worker, pixels: 0 };
  worker.onmessage = ({ data }: MessageEvent<FromWorker>) => {
    // What was on its way when the worker was ended is for nobody.
    if (!slots.has(slot)) return;
    const task = slot.task;
    if ("needs" in data) {
      const file = task?.files[data.needs];
      if (file !== undefined) worker.postMessage({ file } satisfies ToWorker);
      return;
    }
    delete slot.task;
    clearTimeout(slot.timer);
    if (slot.pixels >= RENEWAL_PIXELS) end(slot);
    task?.settle(data);
    serve();
    if (slot.task !== undefined || !slots.has(slot)) return;
    slot.timer = setTimeout(() => end(slot), IDLE_MS);
    Deno.unrefTimer(slot.timer);
  };
  // What a worker does not catch ends it, and is no reason to end the process.
  worker.onerror = (event) => {
    event.preventDefault();
    const task = slot.task;
    end(slot);
    task?.settle({ thrown: new GatewayError("internal", "Cannot make the image", { cause: event.message }) });
    serve();
  };
  slots.add(slot);
  return slot;
}

function end(slot: Slot): void {
  slots.delete(slot);
  clearTimeout(slot.timer);
  slot.worker.terminate();
  delete slot.task;
}
