/** Whether a file can be written where the configuration wants it. */
import { dirname, resolve } from "node:path";
import type { Config } from "../config.ts";
import { createNotes, type Finding, reasonOf } from "./finding.ts";

/** Looks at the place for entries that wait for a store that is out of reach. Only a store of several nodes needs one. */
export function checkJournal({ store, nodes }: Pick<Config, "store" | "nodes">): Finding[] {
  const notes = createNotes("journal");
  if (store.kind !== "postgres") return notes.found;
  if (nodes.journal === null) {
    notes.warn(
      "There is no journal: while the store is out of reach, requests that cost are refused",
      "Name a file in nodes.journal, unless no disk outlives the process",
    );
    return notes.found;
  }
  const why = whyNotWritable(nodes.journal);
  if (why === undefined) notes.ok(`"${nodes.journal}" can be written to`);
  else notes.error(`"${nodes.journal}" cannot be written to: ${why}`, "Name another file in nodes.journal, or null");
  return notes.found;
}

/** Why this file cannot be written, tried out beside it; `undefined` where it can. Folders that are not there are made later. */
export function whyNotWritable(path: string): string | undefined {
  const file = resolve(path);
  if (Deno.permissions.querySync({ name: "write", path: file }).state !== "granted") {
    return "this program was made for other folders";
  }
  try {
    if (Deno.statSync(file).isDirectory) return "there is a folder of this name";
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) return reasonOf(error);
  }
  const trial = `${nearestFolder(file)}/.sluice-check-${crypto.randomUUID()}`;
  try {
    Deno.writeFileSync(trial, new Uint8Array(), { createNew: true, mode: 0o600 });
    Deno.removeSync(trial);
    return undefined;
  } catch (error) {
    return reasonOf(error).replace(`: open '${trial}'`, "");
  }
}

/** The innermost folder around the file that is there. */
function nearestFolder(file: string): string {
  const folder = dirname(file);
  try {
    Deno.statSync(folder);
    return folder;
  } catch (error) {
    return error instanceof Deno.errors.NotFound && folder !== dirname(folder) ? nearestFolder(folder) : folder;
  }
}
