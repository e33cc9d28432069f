import { DatabaseSync } from "node:sqlite";
import { assertEquals } from "@std/assert";
import { watchFile } from "../../lib/config/watch_file.ts";
import { findProgram, skipIf } from "../support/skip.ts";
import { pause } from "../support/soon.ts";

/** Counts reported changes, and waits for the next one. */
function counter() {
  let count = 0;
  let notified = Promise.withResolvers<void>();
  return {
    changed() {
      count++;
      notified.resolve();
      notified = Promise.withResolvers<void>();
    },
    count: () => count,
    next: () => notified.promise,
  };
}

async function inFolder(test: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await test(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Time between two looks, in milliseconds. */
const CHECK_MS = 10;

Deno.test("watchFile() reports many writes as one change, and ignores other files", () =>
  inFolder(async (folder) => {
    const path = `${folder}/sluice.jsonc`;
    await Deno.writeTextFile(path, "0");
    const { changed, count, next } = counter();
    const end = watchFile({ path, changed, settleMs: 40, checkMs: CHECK_MS });
    for (let number = 0; number < 20; number++) {
      await Deno.writeTextFile(`${folder}/other`, String(number));
    }
    await pause(80);
    assertEquals(count(), 0);
    const reported = next();
    for (let number = 0; number < 20; number++) await Deno.writeTextFile(path, String(number));
    await reported;
    await pause(80);
    assertEquals(count(), 1);
    end();
    end();
    await Deno.writeTextFile(path, "after the end");
    await pause(80);
    assertEquals(count(), 1);
  }));

Deno.test("watchFile() reports a file that is written continuously", () =>
  inFolder(async (folder) => {
    const path = `${folder}/sluice.jsonc`;
    const { changed, next } = counter();
    const end = watchFile({ path, changed, settleMs: 40, checkMs: CHECK_MS });
    let over = false;
    const reported = next().then(() => over = true);
    while (!over) {
      await Deno.writeTextFile(path, "x", { append: true });
      await pause(5);
    }
    await reported;
    end();
  }));

Deno.test("watchFile() reports a symbolic link that changes, as for a ConfigMap", () =>
  inFolder(async (folder) => {
    for (const name of ["one", "two"]) {
      await Deno.mkdir(`${folder}/${name}`);
      await Deno.writeTextFile(`${folder}/${name}/sluice.jsonc`, name);
    }
    await Deno.symlink("one", `${folder}/..data`);
    await Deno.symlink("..data/sluice.jsonc", `${folder}/sluice.jsonc`);
    const { changed, next } = counter();
    const end = watchFile({ path: `${folder}/sluice.jsonc`, changed, settleMs: 10, checkMs: CHECK_MS });
    const reported = next();
    await Deno.symlink("two", `${folder}/..data_tmp`);
    await Deno.rename(`${folder}/..data_tmp`, `${folder}/..data`);
    await reported;
    end();
  }));

Deno.test("watchFile() accepts a missing folder, and a file that disappears and returns", () =>
  inFolder(async (folder) => {
    const path = `${folder}/later/sluice.jsonc`;
    const { changed, next } = counter();
    const end = watchFile({ path, changed, settleMs: 5, checkMs: CHECK_MS });
    await pause(20);
    let reported = next();
    await Deno.mkdir(`${folder}/later`);
    await Deno.writeTextFile(path, "1");
    await reported;
    for (const change of [() => Deno.remove(path), () => Deno.writeTextFile(path, "22")]) {
      reported = next();
      await change();
      await reported;
    }
    end();
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
      const { changed, count, next } = counter();
      const end = watchFile({ path, changed, settleMs: 5, checkMs: CHECK_MS });
      // By another process: this one must not close the file itself.
      await new Deno.Command("cat", { args: [`${folder}/store.db`], stdout: "null" }).output();
      await new Deno.Command("touch", { args: [`${folder}/store.db`] }).output();
      const reported = next();
      await pause(2 * CHECK_MS);
      await Deno.writeTextFile(path, "1");
      await reported;
      assertEquals([await isLocked(), count()], [true, 1]);
      end();
    }),
});
