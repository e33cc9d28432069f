/** Profiles a process with V8's sampling profiler, through the inspector of Deno. */
import { freePort } from "./running.ts";

/** Samples of the profiler, in V8's format. */
interface Profile {
  nodes: {
    id: number;
    callFrame: { functionName: string; url: string; lineNumber: number };
    children?: number[];
  }[];
  samples: number[];
  timeDeltas: number[];
}

/** Time at one place in the code, as a share of the time in which the process was busy. */
export interface ProfileShare {
  place: string;
  share: number;
}

/** Summary of a profile. */
export interface ProfileSummary {
  /** Functions by the time spent in themselves, most first. */
  functions: ProfileShare[];
  /** Files by the time spent in their functions themselves. */
  files: ProfileShare[];
  /**
   * Our own files by the time spent in them and in the runtime on their behalf; all other time belongs to the runtime.
   */
  owners: ProfileShare[];
  /** Functions by the time spent in them and all that they called. */
  inclusive: ProfileShare[];
  /** Share of the time in which the process did nothing. */
  idle: number;
}

/** The inspector's bridge for network events runs only while a profiler is attached. */
const INSPECTOR = "inspector_network_bridge";

/** The flags that open the inspector of a process, and its address. */
export function inspecting(): { flags: string[]; port: number } {
  const port = freePort();
  return { flags: [`--inspect=127.0.0.1:${port}`], port };
}

/** The inspector of a process. */
export interface Inspector {
  /** Calls a method of the DevTools protocol. */
  // deno-lint-ignore no-explicit-any -- the type of the result depends on the method
  ask(method: string, params?: Record<string, unknown>): Promise<any>;
  close(): void;
}

/** Connects to the inspector of a process. */
export async function openInspector(port: number): Promise<Inspector> {
  const [page] = await (await fetch(`http://127.0.0.1:${port}/json/list`)).json();
  const socket = new WebSocket(page.webSocketDebuggerUrl);
  await new Promise((resolve) => socket.onopen = resolve);
  let id = 0;
  const waiting = new Map<number, (result: unknown) => void>();
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    waiting.get(message.id)?.(message.result);
  };
  return {
    ask: (method, params = {}) =>
      new Promise((resolve) => {
        waiting.set(++id, resolve);
        socket.send(JSON.stringify({ id, method, params }));
      }),
    close: () => socket.close(),
  };
}

/** Samples a process while `work` goes on. */
export async function profile(port: number, work: () => Promise<void>): Promise<ProfileSummary> {
  const inspector = await openInspector(port);
  await inspector.ask("Profiler.enable");
  await inspector.ask("Profiler.setSamplingInterval", { interval: 200 });
  await inspector.ask("Profiler.start");
  await work();
  const { profile } = await inspector.ask("Profiler.stop");
  inspector.close();
  return readProfile(profile);
}

function readProfile({ nodes, samples, timeDeltas }: Profile): ProfileSummary {
  const self = new Map<number, number>();
  samples.forEach((node, index) => self.set(node, (self.get(node) ?? 0) + (timeDeltas[index] ?? 0)));
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)));
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
  const sums = () => new Map<string, number>();
  const [functions, files, owners, within] = [sums(), sums(), sums(), sums()];
  const add = (to: Map<string, number>, name: string, us: number) => to.set(name, (to.get(name) ?? 0) + us);
  let [idle, busy] = [0, 0];
  for (const { id, callFrame } of nodes) {
    const us = self.get(id) ?? 0;
    if (us === 0) continue;
    if (callFrame.functionName === "(idle)") {
      idle += us;
      continue;
    }
    const stack = new Set<string>();
    for (let at: number | undefined = id; at !== undefined; at = parents.get(at)) {
      const frame = frames.get(at);
      if (frame !== undefined) stack.add(nameOf(frame));
    }
    if ([...stack].some((name) => name.includes(INSPECTOR))) continue;
    busy += us;
    add(functions, nameOf(callFrame), us);
    add(files, fileOf(callFrame.url) || callFrame.functionName, us);
    for (const name of stack) add(within, name, us);
    add(owners, ownerOf([...stack]), us);
  }
  const places = (of: Map<string, number>) =>
    [...of].map(([place, us]) => ({ place, share: us / busy })).sort((a, b) => b.share - a.share);
  return {
    functions: places(functions),
    files: places(files),
    owners: places(owners),
    inclusive: places(within),
    idle: idle / (idle + busy),
  };
}

/** `stack`: names of functions, the innermost first. */
function ownerOf(stack: readonly string[]): string {
  const own = stack.find((name) => / (lib|routes|bench)\//.test(name));
  // The outermost one is the root of all.
  const name = own ?? stack.findLast((name) => name.includes(" ")) ?? stack[0] ?? "";
  return / ([^ ]+):\d+$/.exec(name)?.[1] ?? name;
}

function nameOf({ functionName, url, lineNumber }: Profile["nodes"][number]["callFrame"]): string {
  const file = fileOf(url);
  return `${functionName || "(anonymous)"}${file === "" ? "" : ` ${file}:${lineNumber + 1}`}`;
}

function fileOf(url: string): string {
  return url.replace(/^.*\/(lib|routes|tools|bench)\//, "$1/").replace(/^.*\/npm\/registry\.npmjs\.org\//, "npm:");
}
