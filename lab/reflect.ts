/**
 * The metadata functions that @peculiar/x509's container asks for when it is loaded. It registers everything by
 * hand and never reads metadata, so answering "none" is enough and no polyfill package is needed.
 * Import this before '@peculiar/x509'.
 */
interface MetadataReflect {
  getMetadata?: () => unknown;
  getOwnMetadata?: () => unknown;
  defineMetadata?: () => void;
}

const reflect = Reflect as MetadataReflect;
reflect.getMetadata ??= () => undefined;
reflect.getOwnMetadata ??= () => undefined;
reflect.defineMetadata ??= () => undefined;
