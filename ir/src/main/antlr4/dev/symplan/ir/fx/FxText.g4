/**
 * The statements of an FX graph's Python text, each parsed alone; StatementReader says where they end.
 *
 * Operators are a flat list here: precedence is FxReader's, which keeps every decision LL(2).
 */
grammar FxText;

forward : 'def' NAME '(' (params += param (',' params += param)* ','?)? ')' (ARROW result = expr)? ':' EOF ;

// Of a subgraph: others do not matter.
subgraph : 'class' name = NAME '(' (NAME | PATH) ')' ':' EOF ;

param : name = NAME (':' annotation)? ('=' expr)? ;

// PyTorch 2.0 writes types without quotes.
annotation : quoted = STRING | NAME shape* | NAME '(' expr (',' expr)* ')' ;

shape : '[' (expr (',' expr)*)? ']' ;

assignment : name = NAME (':' annotation)? '=' value = expr deletes* EOF ;

// x: "f32[4]"; y: "f32[4]";
declarations : declared += declaration (';' declared += declaration)* ';'? EOF ;

declaration : name = NAME ':' annotation ;

// x, y, = fx_pytree.tree_flatten_spec(([x, y], {}), self._in_spec)
flattening : names += NAME (',' names += NAME)* ','? '=' target = PATH '(' expr (',' expr)* ')' deletes* EOF ;

// What is no longer used, as torch.fx marks it: x = y = None.
deletes : ';' NAME '=' (NAME '=')* 'None' ;

returned : 'return' (values += expr (',' values += expr)* comma = ','?)? deletes* EOF ;

expr : operands += unary (operators += (PLUS | MINUS | TIMES | DIVIDE | FLOOR_DIVIDE | MODULO | POWER
        | LESS | LESS_EQUAL | GREATER | GREATER_EQUAL | EQUAL | NOT_EQUAL) operands += unary)* ;

unary : minus = '-'? operand = primary ;

primary
    : (call attribute = ATTRIBUTE? | name = (NAME | PATH) | token = (INT | FLOAT | STRING | 'True' | 'False' | 'None')
        | open = '[' (items += expr (',' items += expr)* ','?)? ']'
        | paren = '(' (items += expr (commas += ',' items += expr)* commas += ','?)? ')' | dict)
      indices += index*
    ;

dict : '{' (keys += expr ':' values += expr (',' keys += expr ':' values += expr)* ','?)? '}' ;

index : '[' value = expr ']' ;

call : target = (NAME | PATH) '(' (args += arg (',' args += arg)* ','?)? ')' ;

arg : (keyword = NAME '=')? value = expr ;

CLASS : 'class' ;
DEF : 'def' ;
RETURN : 'return' ;
TRUE : 'True' ;
FALSE : 'False' ;
NONE : 'None' ;
LPAREN : '(' ;
RPAREN : ')' ;
LBRACKET : '[' ;
RBRACKET : ']' ;
LBRACE : '{' ;
RBRACE : '}' ;
COMMA : ',' ;
COLON : ':' ;
SEMICOLON : ';' ;
EQUALS : '=' ;
ARROW : '->' ;
PLUS : '+' ;
MINUS : '-' ;
TIMES : '*' ;
POWER : '**' ;
DIVIDE : '/' ;
FLOOR_DIVIDE : '//' ;
MODULO : '%' ;
LESS : '<' ;
LESS_EQUAL : '<=' ;
GREATER : '>' ;
GREATER_EQUAL : '>=' ;
EQUAL : '==' ;
NOT_EQUAL : '!=' ;

INT : DIGITS ;
FLOAT : DIGITS '.' DIGITS? EXPONENT? | '.' DIGITS EXPONENT? | DIGITS EXPONENT ;
STRING : '\'' (~['\\\r\n] | '\\' ~[\r\n])* '\'' | '"' (~["\\\r\n] | '\\' ~[\r\n])* '"' ;
UNCLOSED_STRING : '\'' (~['\\\r\n] | '\\' ~[\r\n])* | '"' (~["\\\r\n] | '\\' ~[\r\n])* ;
NAME : WORD ;
PATH : WORD ('.' WORD)+ ;
ATTRIBUTE : ('.' WORD)+ ;

COMMENT : '#' ~[\r\n]* ;
NEWLINE : '\r'? '\n' ;
BLANKS : [ \t]+ -> skip ;
UNKNOWN : . ;

fragment WORD : [A-Za-z_] [A-Za-z0-9_]* ;
fragment DIGITS : [0-9]+ ;
fragment EXPONENT : [eE] [+-]? [0-9]+ ;
