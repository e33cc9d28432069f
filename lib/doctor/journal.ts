/** Checks whether the journal can be written. */
import { reasonOf } from "../causes.ts";
import { dirname, resolve } from "node:path";
import type { Config } from "../config.ts";
import { createNotes, type Finding } from "./finding.ts";

/** Checks the journal, which keeps entries while the store is unreachable. Only a store that nodes share needs one. */
export function checkJournal({ store, nodes }: Pick<Config, "store" | "nodes">): Finding[] {
  const notes = createNotes("journal");
  if (store.kind !== "postgres") return notes.found;
  if (nodes.journal === null) {
    notes.warn(
      "There is no journal: while the store is unreachable, requests with a cost are refused",
      "Set nodes.journal to a file, unless no disk outlives the process",
    );
    return notes.found;
  }
  const why = whyNotWritable(nodes.journal);
  if (why === undefined) notes.ok(`"${nodes.journal}" is writable`);
  else notes.error(`"${nodes.journal}" is not writable: ${why}`, "Set nodes.journal to another file, or to null");
  return notes.found;
}

/**
 * Returns the reason why a file cannot be written; `undefined` if it can. It creates a test file in the same folder; if
 * that is missing, in the nearest one that exists, because missing folders are created later.
 */
export function whyNotWritable(path: string): string | undefined {
  const file = resolve(path);
  if (Deno.permissions.querySync({ name: "write", path: file }).state !== "granted") {
    return "this executable may not write there";
  }
  try {
    if (Deno.statSync(file).isDirectory) return "it is a folder";
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) return reasonOf(error);
  }
  const testFile = `${nearestFolder(file)}/.sluice-check-${crypto.randomUUID()}`;
  try {
    Deno.writeFileSync(testFile, new Uint8Array(), { createNew: true, mode: 0o600 });
    Deno.removeSync(testFile);
    return undefined;
  } catch (error) {
    return reasonOf(error).replace(`: open '${testFile}'`, "");
  }
}

/** Returns the innermost existing folder that would contain a file. */
function nearestFolder(file: string): string {
  const folder = dirname(file);
  try {
    Deno.statSync(folder);
    return folder;
  } catch (error) {
    return error instanceof Deno.errors.NotFound && folder !== dirname(folder) ? nearestFolder(folder) : folder;
  }
}
