/**
 * The workers: started when a picture is first needed, few, fed from one bounded queue for the whole process, and ended
 * when there was nothing to do for a while.
 */
import { GatewayError } from "../errors.ts";
import { turn } from "../pace.ts";
import type { FromWorker, Job, JobResults, ToWorker } from "./codec_jobs.ts";

/** A core is left to the event loop; a second worker is for machines that have one to spare. */
const MOST_WORKERS = navigator.hardwareConcurrency > 2 ? 2 : 1;
/** Longest queue. */
const MOST_WAITING = 256;
/** Time after which whoever is refused may come again, in milliseconds. */
const RETRY_MS = 5_000;
/** Longest time for one job, in milliseconds: files can be made that take hours to decode. */
const MOST_JOB_MS = 120_000;
/** Time that a worker without work is kept, in milliseconds. */
const IDLE_MS = 15_000;

/** Rights of a worker: it reads its own modules, loads the encoders where the process may, and nothing else. */
const PERMISSIONS: Deno.PermissionOptionsObject = {
  read: "inherit",
  ffi: "inherit",
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
  /** Files the job needs. They are copied when its turn comes. */
  files?: readonly Uint8Array<ArrayBuffer>[];
}

interface Task {
  job: Job;
  files: readonly Uint8Array<ArrayBuffer>[];
  settle(answer: FromWorker | { thrown: unknown }): void;
}

interface Slot {
  worker: Worker;
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
  { signal, files = [] }: JobOptions = {},
): Promise<JobResults[T]> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    if (waiting.length >= MOST_WAITING) {
      return reject(new GatewayError("overloaded", "Too many pictures are being made", { retryAfterMs: RETRY_MS }));
    }
    const task: Task = {
      job,
      files,
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

function toError({ kind, message, param, cause }: Extract<FromWorker, { error: unknown }>["error"]): GatewayError {
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

/** Gives waiting tasks to workers that are free, and starts workers up to their number. */
function serve(): void {
  while (waiting.length > 0) {
    const free = [...slots].find((slot) => slot.task === undefined) ??
      (slots.size < MOST_WORKERS ? start() : undefined);
    if (free === undefined) return;
    const task = waiting.shift();
    if (task !== undefined) void give(task, free);
  }
}

async function give(task: Task, slot: Slot): Promise<void> {
  slot.task = task;
  clearTimeout(slot.timer);
  slot.timer = setTimeout(
    () => drop(task, new GatewayError("timeout", `Cannot make the picture within ${MOST_JOB_MS / 1000} seconds`)),
    MOST_JOB_MS,
  );
  try {
    for (const file of task.files) {
      post(slot, { file });
      // Copying takes milliseconds for large files: everybody else is served between two of them.
      await turn();
      if (slot.task !== task) return;
    }
    post(slot, { job: task.job });
  } catch (thrown) {
    drop(task, thrown);
  }
}

function post({ worker }: Slot, message: ToWorker): void {
  worker.postMessage(message);
}

function start(): Slot {
  const worker = new Worker(new URL("./codec_worker.ts", import.meta.url), {
    type: "module",
    name: "images",
    deno: { permissions: PERMISSIONS },
  });
  const slot: Slot = { worker };
  worker.onmessage = ({ data }: MessageEvent<FromWorker>) => {
    // What was on its way when the worker was ended is for nobody.
    if (!slots.has(slot)) return;
    const task = slot.task;
    delete slot.task;
    clearTimeout(slot.timer);
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
    task?.settle({ thrown: new GatewayError("internal", "Cannot make the picture", { cause: event.message }) });
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
