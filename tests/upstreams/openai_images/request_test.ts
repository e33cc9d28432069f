import { assert, assertEquals } from "@std/assert";
import type { Target } from "../../../lib/catalog/model.ts";
import type { ImageRequest } from "../../../lib/images/types.ts";
import { parseJson } from "../../../lib/json/mod.ts";
import { events, images, overEach, PNG, png, readAll, startHost, tellsLength, upload, WEBP } from "./host.ts";

overEach("A generation is asked for in OpenAI's words", async () => {
  const basic = { model: "painter-2", prompt: "A heron", size: "1024x1024", quality: "high" };
  const format = { n: 1, output_format: "png" };
  const cases: [
    about: string,
    request: Partial<ImageRequest>,
    images: Target["images"],
    members: Record<string, unknown>,
  ][] = [
    ["least", {}, undefined, { ...basic, ...format }],
    [
      "everything",
      {
        n: 3,
        size: { width: 3840, height: 2160 },
        requestedSize: "auto",
        quality: "low",
        format: "webp",
        compression: 0,
        background: "opaque",
        user: "u1",
        rest: { moderation: "low", style: { deep: [1] } },
      },
      undefined,
      {
        ...basic,
        n: 3,
        size: "3840x2160",
        quality: "low",
        output_format: "webp",
        output_compression: 0,
        background: "opaque",
        user: "u1",
        moderation: "low",
        style: { deep: [1] },
      },
    ],
    ["our members win", { rest: { model: "x", prompt: "y", n: 9 } }, undefined, { ...basic, ...format }],
    ["one at a time", {}, { single: true }, { ...basic, output_format: "png" }],
    ["addresses", {}, { addresses: true }, { ...basic, ...format, response_format: "b64_json" }],
    ["its own format", { compression: 50 }, { own_format: true }, { ...basic, n: 1 }],
    ["streamed", { stream: true }, undefined, { ...basic, ...format, stream: true }],
    [
      "with previews",
      { stream: true, partialImages: 2 },
      undefined,
      { ...basic, ...format, stream: true, partial_images: 2 },
    ],
    ["not streamed", { stream: true, partialImages: 2 }, { whole: true }, { ...basic, ...format }],
  ];
  const bodies: unknown[] = [];
  await using host = startHost(async (request) => {
    assertEquals(new URL(request.url).pathname, "/v1/images/generations");
    assertEquals(request.headers.get("authorization"), "Bearer sk-host");
    assertEquals(request.headers.get("content-type"), "application/json");
    const body = await request.json();
    bodies.push(body);
    const image = body.output_format === "webp" ? WEBP : PNG;
    return images(image, image, image);
  });
  for (const [about, request, images, members] of cases) {
    const { call, feed } = host.create(request, { images });
    const types = (await readAll(await feed)).map(({ type }) => type);
    assertEquals(types, Array.from(types, () => "image"), about);
    assertEquals(types.length, call.request.n, about);
    assertEquals(bodies.pop(), members, about);
    assertEquals(call.dropped.names, images?.whole === true ? ["partial_images"] : [], about);
  }
});

overEach("A number that a double cannot hold goes to the host as it came", async () => {
  let text = "";
  await using host = startHost(async (request) => {
    text = await request.text();
    return images(PNG);
  });
  const rest = parseJson('{"seed":12345678901234567890}');
  assert(rest !== null && typeof rest === "object" && !Array.isArray(rest));
  await readAll(await host.create({ rest }).feed);
  assert(text.includes('"seed":12345678901234567890'), text);
});

overEach("An edit arrives as a form, to the last byte", async () => {
  const big = randomBytes(3_000_000);
  // Line ends and dashes are the syntax of a form.
  const tricky = new TextEncoder().encode(
    '\r\n--sluice-\r\n\r\n--\r\ncontent-disposition: form-data; name="x"\r\n\r\n',
  );
  const cases: [about: string, request: Partial<ImageRequest>, files: [string, string, string, Uint8Array][]][] = [
    ["one", { images: [upload(big)] }, [["image", "image.png", "image/png", big]]],
    ["one jpeg", { images: [upload(tricky, "jpeg")] }, [["image", "image.jpeg", "image/jpeg", tricky]]],
    ["three and a mask", { images: [upload(big), upload(tricky, "jpeg"), upload(big)], mask: upload(tricky) }, [
      ["image[]", "image.png", "image/png", big],
      ["image[]", "image.jpeg", "image/jpeg", tricky],
      ["image[]", "image.png", "image/png", big],
      ["mask", "mask.png", "image/png", tricky],
    ]],
  ];
  const forms: FormData[] = [];
  await using host = startHost(async (request) => {
    assertEquals(new URL(request.url).pathname, "/v1/images/edits");
    const bytes = await request.bytes();
    assertEquals(request.headers.get("content-length"), tellsLength() ? String(bytes.length) : null);
    forms.push(await new Response(bytes, { headers: request.headers }).formData());
    return images(PNG, PNG);
  });
  for (const [about, request, files] of cases) {
    const rest = { input_fidelity: "high", tags: ["a", "b"], 'odd"\r\nname': "é\r\n--x", options: { a: [true] } };
    const { feed } = host.create({ kind: "edit", n: 2, user: "u1", rest, ...request });
    assertEquals((await readAll(await feed)).length, 2, about);
    const entries = [...forms.pop()?.entries() ?? []];
    assertEquals(
      entries.filter((entry) => typeof entry[1] === "string"),
      [
        ["input_fidelity", "high"],
        ["tags", "a"],
        ["tags", "b"],
        ["odd%22%0D%0Aname", "é\r\n--x"],
        ["options", '{"a":[true]}'],
        ["model", "painter-2"],
        ["prompt", "A heron"],
        ["n", "2"],
        ["size", "1024x1024"],
        ["quality", "high"],
        ["output_format", "png"],
        ["user", "u1"],
      ],
      about,
    );
    const arrived: [string, string, string, Uint8Array][] = [];
    for (const [name, value] of entries) {
      if (value instanceof File) arrived.push([name, value.name, value.type, await value.bytes()]);
    }
    assertEquals(
      arrived.map(([name, filename, type]) => [name, filename, type]),
      files.map((file) => file.slice(0, 3)),
    );
    for (const [at, [, , , bytes]] of files.entries()) {
      assert(sameBytes(arrived[at]?.[3] ?? new Uint8Array(), bytes), `${about}: file ${at}`);
    }
  }
});

overEach(
  "Several images with previews are asked for one by one, as previews do not tell whose they are",
  async () => {
    const counts: unknown[] = [];
    await using host = startHost(async (request, index) => {
      counts.push((await request.json()).n);
      return events(
        { type: "image_generation.partial_image", b64_json: png(10 + index), partial_image_index: 0 },
        { type: "image_generation.completed", b64_json: png(index) },
      );
    });
    const all = await readAll(await host.create({ n: 3, stream: true, partialImages: 1 }).feed);
    assertEquals(counts, [1, 1, 1]);
    for (const index of [0, 1, 2]) {
      assertEquals(all.filter((event) => event.index === index).map(({ type }) => type), ["partial", "image"]);
    }
  },
);

function randomBytes(length: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; at += 65_536) crypto.getRandomValues(bytes.subarray(at, at + 65_536));
  return bytes;
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, at) => byte === b[at]);
}
