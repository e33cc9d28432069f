import { assertEquals } from "@std/assert";
import { watchFile } from "../../lib/config/watch.ts";

/** Counts the changes that are told, and waits for the next one. */
function counter() {
  let count = 0;
  let told = Promise.withResolvers<void>();
  return {
    changed() {
      count++;
      told.resolve();
      told = Promise.withResolvers<void>();
    },
    count: () => count,
    next: () => told.promise,
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

const NEVER_MS = 3_600_000;

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

Deno.test("many writes at once are told as one change, other files of the folder not at all", () =>
  inFolder(async (folder) => {
    const path = `${folder}/sluice.jsonc`;
    await Deno.writeTextFile(path, "0");
    const { changed, count, next } = counter();
    const end = watchFile({ path, changed, settleMs: 40, pollMs: NEVER_MS });
    for (let number = 0; number < 20; number++) {
      await Deno.writeTextFile(`${folder}/other`, String(number));
    }
    await pause(80);
    assertEquals(count(), 0);
    const told = next();
    for (let number = 0; number < 20; number++) await Deno.writeTextFile(path, String(number));
    await told;
    await pause(80);
    assertEquals(count(), 1);
    end();
    end();
    await Deno.writeTextFile(path, "after the end");
    await pause(80);
    assertEquals(count(), 1);
  }));

Deno.test("a file that is written without a pause is told meanwhile", () =>
  inFolder(async (folder) => {
    const path = `${folder}/sluice.jsonc`;
    const { changed, next } = counter();
    const end = watchFile({ path, changed, settleMs: 40, pollMs: NEVER_MS });
    let over = false;
    const told = next().then(() => over = true);
    while (!over) {
      await Deno.writeTextFile(path, "x", { append: true });
      await pause(5);
    }
    await told;
    end();
  }));

Deno.test("a link that is turned to another folder is told, as a ConfigMap's is", () =>
  inFolder(async (folder) => {
    for (const name of ["one", "two"]) {
      await Deno.mkdir(`${folder}/${name}`);
      await Deno.writeTextFile(`${folder}/${name}/sluice.jsonc`, name);
    }
    await Deno.symlink("one", `${folder}/..data`);
    await Deno.symlink("..data/sluice.jsonc", `${folder}/sluice.jsonc`);
    const { changed, next } = counter();
    const end = watchFile({ path: `${folder}/sluice.jsonc`, changed, settleMs: 10, pollMs: NEVER_MS });
    const told = next();
    await Deno.symlink("two", `${folder}/..data_tmp`);
    await Deno.rename(`${folder}/..data_tmp`, `${folder}/..data`);
    await told;
    end();
  }));

Deno.test("where nobody tells of changes, they are found by looking", () =>
  inFolder(async (folder) => {
    const path = `${folder}/later/sluice.jsonc`;
    const { changed, next } = counter();
    const blind = Promise.withResolvers<unknown>();
    // There is no such folder yet, so that it cannot be watched.
    const end = watchFile({ path, changed, blind: blind.resolve, settleMs: 5, pollMs: 10 });
    await blind.promise;
    await pause(20);
    let told = next();
    await Deno.mkdir(`${folder}/later`);
    await Deno.writeTextFile(path, "1");
    await told;
    told = next();
    await Deno.writeTextFile(path, "22");
    await told;
    end();
  }));
