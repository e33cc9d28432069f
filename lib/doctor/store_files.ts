/** The files of the store: who may read them, whether they can be written, and who else does. */
import { statfs } from "node:fs";
import { dirname, resolve } from "node:path";
import { promisify } from "node:util";
import type { Config } from "../config.ts";
import { takeOwnership } from "../store/sqlite/owner_lock.ts";
import { createNotes, type Finding, type Notes, reasonOf } from "./finding.ts";

/** What stands beside a database in WAL mode, and the lock of its owner. */
const FILES = ["", "-wal", "-shm", "-owner"];

/** Room that is tried out, in bytes: where the system does not tell how much is free, that much is written. */
const ROOM_BYTES = 16 * 1024 * 1024;
/** Less than this is told, in bytes. */
const LITTLE_BYTES = 1024 * 1024 * 1024;

/** Looks at the store. `isServing` tells whether a gateway answers where this configuration listens. */
export async function checkStoreFiles(
  { store }: Pick<Config, "store">,
  isServing: () => Promise<boolean>,
): Promise<Finding[]> {
  const notes = createNotes("store");
  if (store.kind !== "sqlite") return notes.found;
  const path = resolve(store.path);
  const folder = dirname(path);
  try {
    const info = await Deno.stat(folder).catch(absent);
    if (info === undefined) {
      notes.ok(`"${folder}" is not there yet; it is made at the first start`);
      return notes.found;
    }
    if (!info.isDirectory) {
      notes.error(`"${folder}" is no folder`, "Name another path as store");
      return notes.found;
    }
    await checkModes(notes, { folder, path });
    await checkRoom(notes, folder);
    await checkOwner(notes, path, isServing);
  } catch (error) {
    const denied = error instanceof Deno.errors.NotCapable;
    notes.error(
      `"${folder}" cannot be looked at: ${reasonOf(error)}`,
      denied
        ? "This program was made for other folders: keep the store in ./data or /var/lib/sluice"
        : "Let the user who runs the gateway read and write it",
    );
  }
  return notes.found;
}

function absent(error: unknown): undefined {
  if (error instanceof Deno.errors.NotFound) return undefined;
  throw error;
}

/** Keys are kept as hashes, but bills and names are nobody else's business. Not every system has modes. */
async function checkModes(notes: Notes, { folder, path }: { folder: string; path: string }): Promise<void> {
  const wanted = [{ place: folder, octal: "0700" }, ...FILES.map((end) => ({ place: path + end, octal: "0600" }))];
  let open = 0;
  for (const { place, octal } of wanted) {
    const mode = (await Deno.stat(place).catch(absent))?.mode ?? 0;
    if ((mode & 0o077) === 0) continue;
    open++;
    const bits = (mode & 0o777).toString(8).padStart(4, "0");
    notes.warn(`"${place}" is open to others of this machine (${bits})`, `Run chmod ${octal} on it`);
  }
  if (open === 0) notes.ok(`"${folder}" and its files are their owner's alone`);
}

/** Writes into the folder, as much as shows whether a disk is nearly full. */
async function checkRoom(notes: Notes, folder: string): Promise<void> {
  const free = await freeBytes(folder);
  const file = `${folder}/.sluice-doctor-${crypto.randomUUID()}`;
  try {
    await Deno.writeFile(file, new Uint8Array(free === undefined ? ROOM_BYTES : 1), { createNew: true, mode: 0o600 });
  } catch (error) {
    notes.error(
      `"${folder}" cannot be written to: ${reasonOf(error)}`,
      "Let the user who runs the gateway write there, and make room on the disk",
    );
    return;
  } finally {
    await Deno.remove(file).catch(() => {});
  }
  if (free === undefined) return notes.ok(`"${folder}" can be written to, at least ${ROOM_BYTES / 1024 / 1024} MiB`);
  const text = `${(free / 1024 / 1024 / 1024).toFixed(1)} GiB are free in "${folder}"`;
  if (free >= LITTLE_BYTES) return notes.ok(`It can be written to; ${text}`);
  notes.warn(`Only ${text}`, "Make room: where nothing can be entered in the ledger, nothing is answered");
}

/** Only where the program may ask the system, which the executable may not. */
async function freeBytes(folder: string): Promise<number | undefined> {
  const { state } = await Deno.permissions.query({ name: "sys", kind: "statfs" });
  if (state !== "granted") return undefined;
  const { bavail, bsize } = await promisify(statfs)(folder);
  return Number(bavail) * Number(bsize);
}

async function checkOwner(notes: Notes, path: string, isServing: () => Promise<boolean>): Promise<void> {
  if (await Deno.stat(`${path}-owner`).catch(absent) === undefined) return;
  try {
    takeOwnership(`${path}-owner`).close();
  } catch (error) {
    if (!/another gateway/.test(reasonOf(error))) throw error;
    if (await isServing()) return notes.ok("A gateway is serving from it, and answers");
    return notes.warn(
      "Another process serves from it, and nobody answers where this configuration listens",
      "End that process before the next start, or look whether it has another configuration",
    );
  }
  notes.ok("No gateway is serving from it");
}
