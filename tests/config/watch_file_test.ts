import { DatabaseSync } from "node:sqlite";
import { assertEquals } from "@std/assert";
import { watchFile } from "../../lib/config/watch_file.ts";
import { findProgram, skipIf } from "../support/skip.ts";

/** A watched file whose watcher pauses until a test continues it. */
class Watched implements AsyncDisposable {
  /** Number of reported changes. */
  count = 0;
  #paused = Promise.withResolvers<() => void>();
  readonly #end: () => Promise<void>;

  constructor(path: string, since?: number) {
    this.#end = watchFile({
      path,
      since,
      changed: () => this.count++,
      pause: (_, signal) =>
        new Promise((resolve) => {
          signal.addEventListener("abort", () => resolve(), { once: true });
          this.#paused.resolve(resolve);
        }),
    });
  }

  /** Resolves when the watcher pauses. */
  async paused(): Promise<void> {
    await this.#paused.promise;
  }

  /** Ends a pause of the watcher, and resolves at its next one. */
  async pass(): Promise<void> {
    const goOn = await this.#paused.promise;
    this.#paused = Promise.withResolvers();
    goOn();
    await this.paused();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end();
  }
}

async function inFolder(test: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await test(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("watchFile() reports many writes as one change, and ignores other files", () =>
  inFolder(async (folder) => {
    const path = `${folder}/sluice.jsonc`;
    await Deno.writeTextFile(path, "0");
    await using watched = new Watched(path);
    await watched.paused();
    for (let number = 0; number < 20; number++) await Deno.writeTextFile(`${folder}/other`, String(number));
    await watched.pass();
    assertEquals(watched.count, 0);
    for (let number = 0; number < 20; number++) await Deno.writeTextFile(path, String(number));
    await watched.pass();
    assertEquals(watched.count, 0);
    for (let checks = 0; checks < 3; checks++) {
      await watched.pass();
      assertEquals(watched.count, 1);
    }
    await watched[Symbol.asyncDispose]();
    await Deno.writeTextFile(path, "after the end");
    assertEquals(watched.count, 1);
  }));

Deno.test("watchFile() reports a change between the start of the process and the watch", () =>
  inFolder(async (folder) => {
    const path = `${folder}/sluice.jsonc`;
    await Deno.writeTextFile(path, "0");
    const at = (await Deno.stat(path)).mtime?.getTime() ?? 0;
    for (const [since, count] of [[at, 1], [at + 1, 0]] as const) {
      await using watched = new Watched(path, since);
      for (let checks = 0; checks < 3; checks++) await watched.pass();
      assertEquals(watched.count, count);
    }
    await using watched = new Watched(`${folder}/missing`, at);
    for (let checks = 0; checks < 3; checks++) await watched.pass();
    assertEquals(watched.count, 0);
  }));

Deno.test({
  name: "watchFile() reports a change of the file's permissions, which may have prevented an earlier reload",
  ignore: Deno.build.os === "windows",
  fn: () =>
    inFolder(async (folder) => {
      const path = `${folder}/sluice.jsonc`;
      await Deno.writeTextFile(path, "0", { mode: 0o200 });
      await using watched = new Watched(path);
      await watched.paused();
      await watched.pass();
      assertEquals(watched.count, 0);
      // The clock of the file system ticks every few milliseconds.
      const before = (await Deno.stat(path)).ctime?.getTime();
      do await Deno.chmod(path, 0o600); while ((await Deno.stat(path)).ctime?.getTime() === before);
      for (let checks = 0; checks < 3; checks++) await watched.pass();
      assertEquals(watched.count, 1);
    }),
});

Deno.test("watchFile() reports a file that is written continuously", () =>
  inFolder(async (folder) => {
    const path = `${folder}/sluice.jsonc`;
    await using watched = new Watched(path);
    await watched.paused();
    for (let checks = 0; checks < 5; checks++) {
      assertEquals(watched.count, 0);
      await Deno.writeTextFile(path, "x", { append: true });
      await watched.pass();
    }
    assertEquals(watched.count, 1);
  }));

Deno.test("watchFile() reports a symbolic link that changes, as for a ConfigMap", () =>
  inFolder(async (folder) => {
    for (const name of ["one", "two"]) {
      await Deno.mkdir(`${folder}/${name}`);
      await Deno.writeTextFile(`${folder}/${name}/sluice.jsonc`, name);
    }
    await Deno.symlink("one", `${folder}/..data`);
    await Deno.symlink("..data/sluice.jsonc", `${folder}/sluice.jsonc`);
    await using watched = new Watched(`${folder}/sluice.jsonc`);
    await watched.paused();
    await Deno.symlink("two", `${folder}/..data_tmp`);
    await Deno.rename(`${folder}/..data_tmp`, `${folder}/..data`);
    await watched.pass();
    await watched.pass();
    assertEquals(watched.count, 1);
  }));

Deno.test("watchFile() accepts a missing folder, and a file that disappears and returns", () =>
  inFolder(async (folder) => {
    const path = `${folder}/later/sluice.jsonc`;
    await using watched = new Watched(path);
    await watched.pass();
    assertEquals(watched.count, 0);
    await Deno.mkdir(`${folder}/later`);
    const changes = [
      () => Deno.writeTextFile(path, "1"),
      () => Deno.remove(path),
      () => Deno.writeTextFile(path, "22"),
    ];
    for (const [index, change] of changes.entries()) {
      await change();
      await watched.pass();
      await watched.pass();
      assertEquals(watched.count, index + 1);
    }
  }));

Deno.test({
  name: "watchFile() keeps the process's locks on other files of the folder",
  ignore: Deno.build.os !== "linux" || skipIf(findProgram("cat") === undefined, "cat is not installed"),
  fn: () =>
    inFolder(async (folder) => {
      const path = `${folder}/sluice.jsonc`;
      await Deno.writeTextFile(path, "0");
      using db = new DatabaseSync(`${folder}/store.db`);
      db.exec("PRAGMA journal_mode = WAL; CREATE TABLE t (a)");
      const { ino } = await Deno.stat(`${folder}/store.db`);
      const isLocked = async () =>
        (await Deno.readTextFile("/proc/locks")).split("\n").some((line) =>
          line.includes(` ${Deno.pid} `) && line.includes(`:${ino} `)
        );
      assertEquals(await isLocked(), true);
      await using watched = new Watched(path);
      await watched.paused();
      // By another process: this one must not close the file itself.
      await new Deno.Command("cat", { args: [`${folder}/store.db`], stdout: "null" }).output();
      await new Deno.Command("touch", { args: [`${folder}/store.db`] }).output();
      await watched.pass();
      await Deno.writeTextFile(path, "1");
      await watched.pass();
      await watched.pass();
      assertEquals([await isLocked(), watched.count], [true, 1]);
    }),
});
