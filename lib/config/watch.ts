/** Notices that the file of the configuration has changed, in whatever way it was written. */

/** What is watched, and how. */
export interface Watched {
  path: string;
  /** Called when the file may say something else, at most once per `settleMs`. */
  changed: () => void;
  /** Told where the system gives no notice of changes: the file is then looked at from time to time only. */
  blind?: (error: unknown) => void;
  /** Silence after which a file counts as written, in milliseconds. */
  settleMs?: number;
  /** Time between two looks at the file, for folders whose changes nobody tells, in milliseconds. */
  pollMs?: number;
}

/** Editors and tools write a file in several steps; these are over by then. */
const SETTLE_MS = 100;
/** A file that is written without a pause is read in between, as many times the silence. */
const MOST_SETTLES = 4;
const POLL_MS = 5_000;

/** The link that Kubernetes turns to a new folder, where a file comes from a ConfigMap. */
const TURNED_LINK = "..data";

/**
 * Watches a file. Its folder is watched, as most programs put a new file in the place of the old one, and the file is
 * looked at every few seconds beside, as folders of a network or a container tell nothing. Returns the function that
 * ends it.
 */
export function watchFile(watched: Watched): () => void {
  const { path, changed, blind, settleMs = SETTLE_MS, pollMs = POLL_MS } = watched;
  const { folder, name } = placeOf(path);
  let over = false;
  let settling: ReturnType<typeof setTimeout> | undefined;
  let noticed = 0;
  let seen: string | undefined;

  function notice(): void {
    if (over) return;
    if (settling === undefined) noticed = performance.now();
    else if (performance.now() - noticed >= settleMs * (MOST_SETTLES - 1)) return;
    clearTimeout(settling);
    settling = setTimeout(async () => {
      settling = undefined;
      seen = await stateOf(path);
      if (!over) changed();
    }, settleMs);
  }

  async function poll(): Promise<void> {
    const state = await stateOf(path);
    if (over || settling !== undefined || state === seen) return;
    const isFirst = seen === undefined;
    seen = state;
    if (!isFirst) notice();
  }

  const watcher = openWatcher(folder, blind);
  void listen(watcher, { isOurs: (other) => other === name || other === TURNED_LINK, notice, blind });
  void poll();
  const polling = setInterval(() => void poll(), pollMs);
  return () => {
    if (over) return;
    over = true;
    clearTimeout(settling);
    clearInterval(polling);
    watcher?.close();
  };
}

interface Listening {
  isOurs: (name: string) => boolean;
  notice: () => void;
  blind: Watched["blind"];
}

async function listen(watcher: Deno.FsWatcher | undefined, { isOurs, notice, blind }: Listening): Promise<void> {
  if (watcher === undefined) return;
  try {
    for await (const { kind, paths } of watcher) {
      // Reading the file is an event, too.
      if (kind !== "access" && paths.some((path) => isOurs(placeOf(path).name))) notice();
    }
  } catch (error) {
    blind?.(error);
  }
}

function openWatcher(folder: string, blind: Watched["blind"]): Deno.FsWatcher | undefined {
  try {
    return Deno.watchFs(folder, { recursive: false });
  } catch (error) {
    blind?.(error);
    return undefined;
  }
}

/** What changes with the file's content; the same text for every file that is not there. */
async function stateOf(path: string): Promise<string> {
  try {
    const { mtime, size, ino, dev } = await Deno.stat(path);
    return `${mtime?.getTime()} ${size} ${ino} ${dev}`;
  } catch {
    return "none";
  }
}

function placeOf(path: string): { folder: string; name: string } {
  const at = Math.max(path.lastIndexOf("/"), Deno.build.os === "windows" ? path.lastIndexOf("\\") : -1);
  return { folder: at === -1 ? "." : path.slice(0, at) || "/", name: path.slice(at + 1) };
}
