import { assertStrictEquals } from "@std/assert";
import { render, WRITTEN } from "./write.ts";

Deno.test("lib/json/strings_wasm.ts is what `deno task wasm` writes", async () => {
  assertStrictEquals(await Deno.readTextFile(WRITTEN), await render());
});
