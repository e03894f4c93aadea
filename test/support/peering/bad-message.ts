import { fc } from '../property.ts';

/** Messages of a link, most of them broken somewhere: wrong types, missing fields, hostile keys and numbers. */
const value = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom<unknown>(
    null,
    -1,
    0,
    2 ** 53,
    '',
    'x'.repeat(5_000),
    [],
    {},
    '__proto__',
    '\u0000\u202e\n',
    [[[[[[]]]]]],
  ),
);

const id = fc.oneof(fc.integer({ min: 1, max: 20 }), value);

const documents = fc.oneof(
  value,
  fc.record({ request: value, acceptance: value, offer: value, grant: value }, { requiredKeys: [] }),
  fc.record({
    request: fc.record({ clusterName: value, namespaces: fc.array(value), names: value, joinToken: value }),
    grant: fc.record({ state: fc.constantFrom('Active', 'Pending', 'x'), contract: value, api: value }),
  }),
);

const hello = fc.oneof(
  value,
  fc.record({
    clusterName: fc.oneof(fc.string(), value),
    protocols: fc.oneof(fc.constant([1]), fc.array(value)),
    software: fc.oneof(fc.string({ maxLength: 70 }), value),
    endpoints: fc.oneof(fc.constant(['host:1']), fc.array(value)),
    networkProofs: fc.oneof(fc.constant([]), fc.array(value)),
  }),
);

const message = fc.oneof(
  fc.record({ type: fc.constant('hello'), hello }, { requiredKeys: ['type'] }),
  fc.record({ type: fc.constant('state'), id, documents }, { requiredKeys: ['type'] }),
  fc.record({ type: fc.constant('ack'), id, problem: value }, { requiredKeys: ['type'] }),
  fc.record(
    {
      type: fc.constant('call'),
      id,
      method: fc.oneof(fc.constantFrom('credential', 'dial', 'toString'), value),
    },
    { requiredKeys: ['type'] },
  ),
  fc.record({ type: fc.constantFrom('result', 'error'), id, result: value, code: value, message: value }),
  fc.record({ type: fc.string({ maxLength: 40 }), id, x: value }, { requiredKeys: ['type'] }),
);

/** Cuts the text, puts something in, or leaves it. */
const damaged = (text: string, at: number, insert: string): string => {
  const place = at % (text.length + 1);
  return text.slice(0, place) + insert + text.slice(place);
};

export const badMessage: fc.Arbitrary<string> = fc.oneof(
  { weight: 6, arbitrary: message.map((each) => JSON.stringify(each)) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(message, fc.nat(), fc.constantFrom('', '"', '{', '\\u0000', '1e309', '"__proto__":{},', ','))
      .map(([each, at, insert]) => damaged(JSON.stringify(each), at, insert)),
  },
  { weight: 1, arbitrary: fc.string({ unit: 'binary' }) },
);
