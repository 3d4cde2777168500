/**
 * PyTorch's schema language, after torch/csrc/jit/frontend/function_schema_parser.cpp and
 * schema_type_parser.cpp. All decisions are LL(1).
 */
grammar SchemaText;

schema : name = opName '(' (params += param (',' params += param)*)? ')' '->' gives = results EOF ;

opName : word '::' word ('.' word)? ;

word : WORD | GENERIC | TRUE | FALSE | NONE ;

param
    : star = '*'
    | varargs = '...'
    | of = type name = WORD ('=' value = literal)?
    ;

// A list of results looks like a tuple; SchemaReader tells them apart.
results : varargs = '...' | list = result ;

result : of = type name = WORD? ;

type
    : ( base += (WORD | NONE) ('.' base += WORD)*
      | generic = GENERIC '(' elements += result (',' elements += result)* ')'
      | tuple = '(' (elements += result (',' elements += result)*)? ')'
      )
      inner = alias?
      (suffixes += suffix+ outer = alias?)?
    ;

suffix : optional = '?' | '[' size = INT? ']' ;

alias : '(' before = aliasSet write = '!'? ('->' after = aliasSet)? ')' ;

aliasSet : names += (WORD | '*') ('|' names += (WORD | '*'))* ;

literal
    : token = (INT | FLOAT | STRING | TRUE | FALSE | NONE | WORD)
    | open = '[' (items += literal (',' items += literal)*)? ']'
    ;

GENERIC : 'Dict' | 'Future' | 'Await' | 'RRef' | 'Union' ;
TRUE : 'True' ;
FALSE : 'False' ;
NONE : 'None' ;
INT : '-'? DIGITS ;
// inf and nan are words, as parameters may be called so.
FLOAT : '-'? (DIGITS '.' DIGITS? EXPONENT? | '.' DIGITS EXPONENT? | DIGITS EXPONENT) | '-inf' ;
WORD : [A-Za-z_] [A-Za-z0-9_]* ;
STRING : '"' (~["\\\r\n] | '\\' ~[\r\n])* '"' | '\'' (~['\\\r\n] | '\\' ~[\r\n])* '\'' ;
BLANKS : [ \t\r\n]+ -> skip ;
UNKNOWN : . ;

fragment DIGITS : [0-9]+ ;
fragment EXPONENT : [eE] [+-]? [0-9]+ ;
