/**
 * The part of OpenAPI v3 that Kubernetes accepts in a CustomResourceDefinition ("structural schema"), narrowed to
 * what we use. A description is not optional: it is what `kubectl explain` shows.
 */
export interface Schema {
  type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean';
  description: string;
  format?: 'date-time' | 'int32' | 'int64';
  default?: unknown;
  enum?: readonly string[];
  pattern?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  minItems?: number;
  maxItems?: number;
  minProperties?: number;
  maxProperties?: number;
  required?: readonly string[];
  properties?: Readonly<Record<string, Schema>>;
  additionalProperties?: Schema;
  items?: Schema;
  anyOf?: readonly { type: 'integer' | 'string' }[];
  'x-kubernetes-int-or-string'?: true;
  'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map';
  'x-kubernetes-list-map-keys'?: readonly string[];
  'x-kubernetes-validations'?: readonly Validation[];
}

/** One rule in CEL (KEP-2876). Every string and list it looks at needs a maximum, else its cost is over budget. */
export interface Validation {
  rule: string;
  message: string;
  /** Not FieldValueDuplicate: with that one the API server leaves the message out. */
  reason?: 'FieldValueInvalid' | 'FieldValueForbidden' | 'FieldValueRequired';
  fieldPath?: string;
}

/** One schema for each field of the type, no more and no fewer: a new field without a schema does not compile. */
export type SchemaOf<T> = { readonly [Key in keyof Required<T>]: Schema };

/** An object with the fields of the type; `required` names some of them. */
export const objectOf = <T>(
  description: string,
  required: readonly (keyof T & string)[],
  properties: SchemaOf<T>,
): Schema => ({ type: 'object', description, ...(required.length > 0 && { required }), properties });

/** The whole object; Kubernetes fills in apiVersion, kind and metadata. */
export const wholeOf = (description: string, properties: { spec: Schema; status: Schema }): Schema =>
  objectOf(description, ['spec'], properties);

const arrayOf =
  (listType: 'atomic' | 'set') =>
  (description: string, maxItems: number, items: Schema): Schema => ({
    type: 'array',
    description,
    maxItems,
    'x-kubernetes-list-type': listType,
    items,
  });
/** A list that is written as a whole. */
export const listOf: ReturnType<typeof arrayOf> = arrayOf('atomic');
/** A list without repetition, in which each writer owns its items. */
export const setOf: ReturnType<typeof arrayOf> = arrayOf('set');

/** One of these words. */
export const choice = (description: string, words: readonly string[], fallback?: string): Schema => ({
  type: 'string',
  description,
  ...(fallback !== undefined && { default: fallback }),
  enum: words,
});

type Bounds = Pick<Schema, 'default' | 'minimum' | 'maximum'>;
export const int32 = (description: string, bounds: Bounds): Schema => ({
  type: 'integer',
  format: 'int32',
  description,
  ...bounds,
});
export const int64 = (description: string, bounds: Bounds): Schema => ({
  type: 'integer',
  format: 'int64',
  description,
  ...bounds,
});

const LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';

/** A DNS label (RFC 1123): what namespaces are named with. */
export const dnsLabel = (description: string): Schema => ({
  type: 'string',
  description,
  minLength: 1,
  maxLength: 63,
  pattern: `^${LABEL}$`,
});

/** A DNS name in lower case: what most objects are named with. */
export const dnsName = (description: string, maxLength = 253): Schema => ({
  type: 'string',
  description,
  minLength: 1,
  maxLength,
  pattern: `^${LABEL}(\\.${LABEL})*$`,
});

/** The conditions of a status, as in metav1.Condition (KEP-1623); `types` says which there are. */
export const conditions = (types: string): Schema => ({
  type: 'array',
  description: `What holds and what does not, each with its cause. Types: ${types}.`,
  maxItems: 16,
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['type'],
  items: {
    type: 'object',
    description: 'One condition.',
    required: ['type', 'status', 'lastTransitionTime', 'reason', 'message'],
    properties: {
      type: { type: 'string', description: 'Which condition this is.', minLength: 1, maxLength: 316 },
      status: choice('Whether it holds; Unknown where nobody could look.', ['True', 'False', 'Unknown']),
      observedGeneration: int64('The metadata.generation of the object when this was found out.', {
        minimum: 0,
      }),
      lastTransitionTime: {
        type: 'string',
        format: 'date-time',
        description: 'When the status last changed from one value to another.',
      },
      reason: {
        type: 'string',
        description: 'The cause in one word, from a closed list; for programs.',
        minLength: 1,
        maxLength: 1024,
        pattern: '^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$',
      },
      message: { type: 'string', description: 'The cause in a sentence; for people.', maxLength: 32768 },
    },
  },
});
