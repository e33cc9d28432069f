import { assert, assertEquals, assertMatch } from "@std/assert";
import { loadTokenCounter } from "../../../lib/o200k/mod.ts";
import { errorOf, formOf, gray, painter, paintsAll, startPainted } from "./gateway.ts";
import { exif, exifSegment, join, jpegHead, png, pngHead } from "../../images/image_files.ts";

const PROMPT_TOKENS = (await loadTokenCounter()).count("Blue");

type File = readonly [name: string, bytes: Uint8Array<ArrayBuffer>, filename?: string];

Deno.test("an edit returns exactly the members of an image result, with the number of images", async () => {
  await using gateway = startPainted({ p: painter(paintsAll) });
  const response = await gateway.edit(formOf({}, [["image", png(1024, 1024)]]));
  assertEquals(response.status, 200);
  assertEquals(await response.json(), {
    created: 1_790_000_000,
    data: [{ b64_json: gray({ width: 1024, height: 1024 }), index: 0 }],
    model: "acme/paint",
    size: "auto",
    quality: "low",
    usage: {
      input_tokens: PROMPT_TOKENS,
      input_tokens_details: { text_tokens: PROMPT_TOKENS },
      output_tokens: 7_024,
      total_tokens: PROMPT_TOKENS + 7_024,
      num_input_images: 1,
    },
    num_input_images: 1,
  });
});

Deno.test("images are read from image, repeated image and image[], in order, whatever their names and types", async () => {
  const upstream = painter(paintsAll);
  await using gateway = startPainted({ p: upstream });
  const files: File[] = [
    ["image", png(1024, 1024), "a.jpg"],
    ["image[]", jpegHead(800, 600), "b.exe"],
    ["image", png(30, 20), ""],
    ["mask", png(1024, 1024)],
  ];
  const response = await gateway.edit(formOf({}, files));
  assertEquals((await response.json()).num_input_images, 3);
  const { images = [], mask } = upstream.calls[0]?.request ?? {};
  assertEquals(images.map(({ type, width, height, orientation }) => [type, width, height, orientation]), [
    ["png", 1024, 1024, 1],
    ["jpeg", 800, 600, 1],
    ["png", 30, 20, 1],
  ]);
  assertEquals([images[1]?.bytes, mask?.bytes], [jpegHead(800, 600), png(1024, 1024)]);
});

Deno.test("size auto is the displayed size of the first image, or the nearest valid one", async () => {
  const upstream = painter(paintsAll);
  await using gateway = startPainted({ p: upstream });
  const turned = jpegHead(1024, 1536, exifSegment(exif(6)));
  const cases: [File, string | undefined, string][] = [
    [["image", png(1536, 1024)], undefined, "1536x1024"],
    [["image", png(1536, 1024)], "auto", "1536x1024"],
    [["image", png(1536, 1024)], "1024x1024", "1024x1024"],
    [["image", turned], "auto", "1536x1024"],
    [["image", jpegHead(1024, 1536, exifSegment(exif(3)))], "auto", "1024x1536"],
    [["image", png(1920, 1080)], "auto", "1920x1088"],
    [["image", png(200, 200)], "auto", "816x816"],
    [["image", pngHead(8000, 4000)], "auto", "3840x1920"],
    [["image", pngHead(16_000, 100)], "auto", "2192x736"],
  ];
  for (const [file, size, made] of cases) {
    const response = await gateway.edit(formOf({ size }, [file]));
    assertEquals([response.status, response.headers.get("x-sluice-image-size")], [200, made]);
    assertEquals((await response.json()).size, size ?? "auto");
    const request = upstream.calls.at(-1)?.request;
    assertEquals(`${request?.size.width}x${request?.size.height}`, made);
  }
});

Deno.test("numbers and booleans are parsed, and other fields pass to the upstream unchanged", async () => {
  const upstream = painter(paintsAll);
  await using gateway = startPainted({ p: upstream });
  const fields = {
    n: "2",
    stream: "false",
    partial_images: "0",
    output_format: "jpeg",
    output_compression: "70",
    background: "opaque",
    input_fidelity: "high",
    response_format: "b64_json",
    user: "7",
    seed: "5",
  };
  const response = await gateway.edit(formOf(fields, [["image", png(1024, 1024)]]));
  assertEquals((await response.json()).data.length, 2);
  const { images: _, ...request } = upstream.calls[0]?.request ?? { images: [] };
  assertEquals(request, {
    kind: "edit",
    model: "acme/paint",
    prompt: "Blue",
    quality: "low",
    n: 2,
    requestedSize: "auto",
    size: { width: 1024, height: 1024 },
    format: "jpeg",
    compression: 70,
    background: "opaque",
    stream: false,
    partialImages: 0,
    user: "7",
    rest: { input_fidelity: "high", seed: "5" },
  });
});

const ONE: File = ["image", png(1024, 1024)];

const BAD: readonly [what: string, Record<string, string | undefined>, readonly File[], string, RegExp][] = [
  ["no image", {}, [], "image", /Missing required parameter: image \(a PNG, JPEG or WebP file\)/],
  ["a URL", { image: "https://example.com/a.png" }, [], "image", /expected a file upload .*not a URL/],
  ["base64", { "image[]": "iVBORw0KGgo=" }, [], "image", /expected a file upload/],
  ["a mask as text", { mask: "https://example.com/a.png" }, [ONE], "mask", /expected a file upload/],
  ["an empty file", {}, [["image", new Uint8Array()]], "image", /file is empty/],
  ["a file of text", {}, [["image", join("hello"), "a.png"]], "image", /neither PNG nor JPEG nor WebP/],
  ["a GIF", {}, [["image", join("GIF89a\x10\0\x10\0")]], "image", /this file is GIF/],
  ["a damaged header", {}, [["image", png(9, 9).slice(0, 20)]], "image", /header is damaged/],
  [
    "too many pixels",
    {},
    [["image", pngHead(16_000, 16_000)]],
    "image",
    /16000x16000 pixels, expected at most 64000000/,
  ],
  ["too long a side", {}, [["image", pngHead(20_000, 10)]], "image", /16384 on a side/],
  ["a second image that is none", {}, [ONE, ["image", join("?")]], "image[1]", /neither PNG nor JPEG nor WebP/],
  ["17 images", {}, Array<File>(17).fill(ONE), "image", /at most 16 images, not 17/],
  [
    "a mask of another size",
    {},
    [ONE, ["mask", png(512, 512)]],
    "mask",
    /size of the first image, 1024x1024, not 512x512/,
  ],
  ["a JPEG as a mask", {}, [ONE, ["mask", jpegHead(1024, 1024)]], "mask", /expected a PNG/],
  ["two masks", {}, [ONE, ["mask", png(1024, 1024)], ["mask", png(1024, 1024)]], "mask", /sent twice/],
  ["no quality", { quality: undefined }, [ONE], "quality", /Missing required parameter: quality, such as "high"/],
  ["quality auto", { quality: "auto" }, [ONE], "quality", /"low", "medium", "high"/],
  ["n in words", { n: "two" }, [ONE], "n", /Expected a number/],
  ["n with a fraction", { n: "1.5" }, [ONE], "n", /Expected a whole number/],
  ["stream yes", { stream: "yes" }, [ONE], "stream", /Expected true or false/],
  ["a file as the prompt", { prompt: undefined }, [ONE, ["prompt", join("Blue"), "p.txt"]], "prompt", /expected text/],
];

Deno.test("an invalid form is a 400 that names the field, and reaches no upstream", async (t) => {
  const upstream = painter(paintsAll);
  await using gateway = startPainted({ p: upstream });
  for (const [what, fields, files, param, message] of BAD) {
    await t.step(what, async () => {
      const error = await errorOf(await gateway.edit(formOf(fields, files)));
      assertEquals([error.status, error.param], [400, param], error.message);
      assertMatch(error.message, message);
    });
  }
  await t.step("a repeated field", async () => {
    const form = formOf({}, [ONE]);
    form.append("prompt", "Red");
    const error = await errorOf(await gateway.edit(form));
    assertEquals([error.status, error.param], [400, "prompt"]);
  });
  assertEquals(upstream.calls, []);
});

Deno.test("a body that is not a form is a 400 that names the expected format", async () => {
  await using gateway = startPainted({ p: painter(paintsAll) });
  const body = { model: "acme/paint", prompt: "x", images: [{ image_url: "https://example.com/a.png" }] };
  const error = await errorOf(await gateway.post("/v1/images/edits", body));
  assertEquals(error.status, 400);
  assertMatch(error.message, /expected multipart\/form-data .* as a file .*image URLs are not supported/);
});

Deno.test("a language model is a 400 that names the right endpoint, before images are read", async () => {
  await using gateway = startPainted({ p: painter(paintsAll) });
  const error = await errorOf(await gateway.edit(formOf({ model: "sluice/echo", quality: undefined })));
  assertEquals([error.status, error.param], [400, "model"]);
  assertMatch(error.message, /\/v1\/chat\/completions/);
});

Deno.test("files and forms above their limits are a 413", async (t) => {
  const images = { uploads: { max_file_bytes: 20_000, max_upload_bytes: 50_000 } };
  const upstream = painter(paintsAll);
  await using gateway = startPainted({ p: upstream }, { images });
  const file = (bytes: number): File => ["image", join(png(9, 9), new Uint8Array(bytes - png(9, 9).length))];
  const cases: [string, File[], number][] = [
    ["a file at the limit", [file(20_000)], 200],
    ["a file above it", [file(20_001)], 413],
    ["a form above the limit", [file(19_000), file(19_000), file(19_000)], 413],
  ];
  for (const [what, files, status] of cases) {
    await t.step(what, async () => {
      const response = await gateway.edit(formOf({}, files)).catch(() => undefined);
      await response?.body?.cancel();
      // A server that closes before everything is sent may look like a broken connection.
      if (status === 200 || response !== undefined) assertEquals(response?.status, status);
    });
  }
  assertEquals(upstream.calls.length, 1);
});

Deno.test("bytes of uploads count towards request bodies in memory, and are released", async () => {
  const upstream = painter(paintsAll);
  await using gateway = startPainted({ p: upstream }, { resource_limits: { body_budget_bytes: 100_000 } });
  const large: File = ["image", join(png(9, 9), new Uint8Array(150_000))];
  const refused = await gateway.edit(formOf({}, [large])).catch(() => undefined);
  if (refused !== undefined) assertEquals(refused.status, 429);
  await refused?.body?.cancel();
  for (let round = 0; round < 3; round++) {
    const response = await gateway.edit(formOf({}, [["image", join(png(9, 9), new Uint8Array(60_000))]]));
    assertEquals((await response.json()).num_input_images, 1);
  }
  assert(upstream.calls.length === 3);
});
